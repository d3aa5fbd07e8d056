"""The layers of a locked base as its own registry keeps them, so that whoever has the base need not fetch them again."""

from __future__ import annotations

from dataclasses import dataclass

from stackbuild.annotate.image_reference import split_reference
from stackbuild.annotate.pin_list import BasePin
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.publish.compressed import LayerBlob
from stackbuild.registry.client import RegistryClient

_GZIPPED = ("+gzip", ".tar.gzip")


@dataclass(frozen=True)
class BaseBlobs:
    """Where a base's layers are.

    Attributes:
        repository: Their repository.
        blobs: Diff ID → blob.
    """

    repository: str
    blobs: dict[str, LayerBlob]


def base_blobs(client: RegistryClient, base: BasePin, platform: str) -> BaseBlobs:
    """Ask a base's registry for its layers; empty when it has no registry, or that cannot be asked now.

    Args:
        client: Reads through the site's mirrors.
        base: From the pin list.
        platform: For example linux/amd64.
    """
    repository, _, _ = split_reference(base.name)
    if base.name.startswith("bootstrap "):
        return BaseBlobs("", {})
    try:
        resolved = client.resolve_digest(repository, base.digest)
        child = resolved.platforms.get(platform) if resolved else None
        if child is None:
            return BaseBlobs(repository, {})
        manifest = client.manifest(repository, child)
        diff_ids = client.config(repository, manifest["config"]["digest"])["rootfs"]["diff_ids"]
    except (LockError, NotJudgedError):
        # The engine has the base's layers too; only their compression differs then.
        return BaseBlobs(repository, {})
    blobs = {
        str(diff_id): LayerBlob(str(diff_id), str(layer["digest"]), int(layer["size"]))
        for diff_id, layer in zip(diff_ids, manifest["layers"], strict=False)
        if str(layer["mediaType"]).endswith(_GZIPPED)
    }
    return BaseBlobs(repository, blobs)
