"""Pushes an image the engine has: layers compressed by us, a manifest of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stackbuild.annotate.annotations import manifest_annotations
from stackbuild.annotate.labels import PINS_LABEL, read_pins_label
from stackbuild.build.image_content import image_config_bytes, layer_tars
from stackbuild.digests import digest_of
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.progress import Observer
from stackbuild.publish.base_blobs import BaseBlobs, base_blobs
from stackbuild.publish.compressed import LayerBlob, compressed_layer, known_blob, remember_blob
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.writer import RegistryWriter
from stackbuild.store.store import Store

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_AT_A_TIME = 3


@dataclass(frozen=True)
class RemoteManifest:
    """One platform's image in a registry.

    Attributes:
        platform: For example linux/amd64.
        digest: Of its manifest.
        size: Of its manifest, in bytes.
        config_digest: Of its configuration.
        diff_ids: Its layers.
        labels: Its labels.
        annotations: The manifest's.
        media_type: The manifest's.
    """

    platform: str
    digest: str
    size: int
    config_digest: str
    diff_ids: tuple[str, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    media_type: str = OCI_MANIFEST

    @property
    def descriptor(self) -> dict[str, Any]:
        """As an index or a subject names it."""
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


def push_image(
    engine: Engine,
    image: ImageInfo,
    repository: str,
    tag: str,
    *,
    writer: RegistryWriter,
    sources: RegistryClient,
    store: Store,
    inputs: str | None,
    observer: Observer,
) -> RemoteManifest:
    """Push an image under a tag. What the registry has already is not sent again.

    Args:
        engine: Has the image.
        image: The image.
        repository: Where it goes.
        tag: Its tag.
        writer: Writes there.
        sources: Reads the base's registry, through the site's mirrors.
        store: Has the layers that were made here, and remembers what layers were compressed to.
        inputs: Hash of what decided the image, for its annotations.
        observer: Told of layers.

    Raises:
        NotJudgedError: The registry or the engine cannot be used.
        LockError: ``registry-failed``: the registry does not take it.
    """
    config = image_config_bytes(engine, image, store)
    platform = f"{image.os}/{image.architecture}"
    base = BaseBlobs("", {})
    if PINS_LABEL in image.labels:
        base = base_blobs(sources, read_pins_label(image.labels, image.id).pins.base, platform)
    annotations = manifest_annotations(image.labels, image.diff_ids, inputs)
    layers = _Layers(engine, image, repository, writer, sources, base, store, observer)
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": CONFIG_TYPE, **writer.put_bytes(repository, config)},
        "layers": [blob.descriptor for blob in layers.push()],
        "annotations": annotations,
    }
    content = json.dumps(manifest, separators=(",", ":")).encode()
    digest, _ = writer.put_manifest(repository, tag, content, OCI_MANIFEST)
    return RemoteManifest(
        platform=platform,
        digest=digest,
        size=len(content),
        config_digest=digest_of(config),
        diff_ids=image.diff_ids,
        labels=dict(image.labels),
        annotations=annotations,
    )


@dataclass
class _Layers:
    """Brings each layer into a repository by the cheapest way there is."""

    engine: Engine
    image: ImageInfo
    repository: str
    writer: RegistryWriter
    sources: RegistryClient
    base: BaseBlobs
    store: Store
    observer: Observer

    def push(self) -> list[LayerBlob]:
        """All layers, in order."""
        distinct = tuple(dict.fromkeys(self.image.diff_ids))
        there = {diff_id: blob for diff_id in distinct if (blob := self._without_tar(diff_id)) is not None}
        missing = tuple(diff_id for diff_id in distinct if diff_id not in there)
        if missing:
            tars = layer_tars(self.engine, self.image, missing, self.store)
            with ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="push") as pool:
                for blob in pool.map(lambda diff_id: self._from_tar(diff_id, tars[diff_id]), missing):
                    there[blob.diff_id] = blob
        return [there[diff_id] for diff_id in self.image.diff_ids]

    def _without_tar(self, diff_id: str) -> LayerBlob | None:
        of_base = self.base.blobs.get(diff_id)
        if of_base is not None:
            if self.writer.has_blob(self.repository, of_base.digest) or self._take_over(of_base):
                return of_base
            return None
        known = known_blob(diff_id, self.store)
        return known if known and self.writer.has_blob(self.repository, known.digest) else None

    def _take_over(self, blob: LayerBlob) -> bool:
        """A base's layer from its own repository: mounted, else copied."""
        if self.writer.mount(self.repository, blob.digest, source=self.base.repository):
            return True
        self.observer.stage("push", f"base layer {blob.digest[7:19]}")
        content = self.sources.blob(self.base.repository, blob.digest)
        with ExitStack() as held:
            try:
                fetched = held.enter_context(self.store.temporary(content))
            except (LockError, NotJudgedError):
                return False  # the engine has it as well
            self._upload(blob, fetched.path)
        return True

    def _from_tar(self, diff_id: str, tar: Path) -> LayerBlob:
        with self.store.lock(f"push-{diff_id}", observer=self.observer):
            self.observer.stage("push", f"layer {diff_id[7:19]}")
            with compressed_layer(diff_id, tar, self.store) as (blob, path):
                self._upload(blob, path)
            return blob

    def _upload(self, blob: LayerBlob, path: Path) -> None:
        self.writer.put_file(self.repository, lambda: path.open("rb"), blob.digest, blob.size)
        remember_blob(blob, self.store)
