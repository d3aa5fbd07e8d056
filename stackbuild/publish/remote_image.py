"""An image as its registry describes it: manifests, configurations, attached documents; no layer is fetched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from stackbuild.digests import digest_of
from stackbuild.errors import LockError
from stackbuild.publish.push import RemoteManifest
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST
from stackbuild.registry.writer import DELETED_TYPE


@dataclass(frozen=True)
class RemoteImage:
    """What a tag or digest names.

    Attributes:
        repository: As it was named.
        digest: Of the index, or of the one manifest.
        is_index: True when it is an index.
        children: One manifest for each platform, in the index's order.
        configs: The configuration of each, by manifest digest.
    """

    repository: str
    digest: str
    is_index: bool
    children: tuple[RemoteManifest, ...]
    configs: dict[str, dict[str, Any]]

    def child(self, platform: str) -> RemoteManifest | None:
        """The manifest for a platform."""
        return next((child for child in self.children if child.platform == platform), None)


def read_remote(client: RegistryClient, repository: str, reference: str) -> RemoteImage | None:
    """Read what a tag or digest names; None when there is no image under it.

    Args:
        client: Reads the registry.
        repository: Without tag.
        reference: A tag or a digest.

    Raises:
        NotJudgedError: As ``RegistryClient.resolve``.
        LockError: ``digest-gone``: an index names a manifest that is not there.
    """
    found = client.document(repository, reference)
    if found is None:
        return None
    body, content_type = found
    document = json.loads(body)
    if document.get("artifactType") == DELETED_TYPE:
        return None
    configs: dict[str, dict[str, Any]] = {}
    if "manifests" not in document:
        media_type = str(document.get("mediaType") or content_type or OCI_MANIFEST)
        child = _child(client, repository, body, media_type, configs)
        return RemoteImage(repository, digest_of(body), False, (child,) if child else (), configs)
    children = []
    for entry in document["manifests"]:
        platform = entry.get("platform") or {}
        if platform.get("architecture") in (None, "", "unknown"):
            continue
        inner = client.document(repository, str(entry["digest"]))
        if inner is None:
            raise LockError(
                f"the index names {entry['digest']}, which the registry does not have",
                code="digest-gone",
                where=f"{client.endpoint(repository).reference}@{digest_of(body)}",
                do="Publish the image again.",
            )
        child = _child(client, repository, inner[0], str(entry.get("mediaType") or OCI_MANIFEST), configs)
        if child is not None:
            children.append(child)
    return RemoteImage(repository, digest_of(body), True, tuple(children), configs)


def index_of(children: tuple[RemoteManifest, ...]) -> bytes:
    """The index over several platforms' manifests, in platform order; equal children give equal bytes."""
    ordered = sorted(children, key=lambda child: child.platform)
    entries = []
    for child in ordered:
        system, _, architecture = child.platform.partition("/")
        entries.append({**child.descriptor, "platform": {"architecture": architecture, "os": system}})
    shared = {
        name: value
        for name, value in ordered[0].annotations.items()
        if all(child.annotations.get(name) == value for child in ordered)
    }
    document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries, "annotations": shared}
    return json.dumps(document, separators=(",", ":")).encode()


def _child(
    client: RegistryClient, repository: str, body: bytes, media_type: str, configs: dict[str, dict[str, Any]]
) -> RemoteManifest | None:
    manifest = json.loads(body)
    config_type = str((manifest.get("config") or {}).get("mediaType") or "")
    if media_type not in (OCI_MANIFEST, DOCKER_MANIFEST) or "image" not in config_type:
        return None  # an attached document or another artifact
    config_digest = str(manifest["config"]["digest"])
    config = client.config(repository, config_digest)
    digest = digest_of(body)
    configs[digest] = config
    return RemoteManifest(
        platform=f"{config.get('os', 'linux')}/{config.get('architecture', '')}",
        digest=digest,
        size=len(body),
        config_digest=config_digest,
        diff_ids=tuple((config.get("rootfs") or {}).get("diff_ids") or ()),
        labels=dict((config.get("config") or {}).get("Labels") or {}),
        annotations=dict(manifest.get("annotations") or {}),
        media_type=media_type,
    )
