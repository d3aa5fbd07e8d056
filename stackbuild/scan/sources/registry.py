"""An image in a registry, read without pulling it: only layers that were never scanned are fetched."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.errors import LockError, ScanError
from stackbuild.registry.client import RegistryClient
from stackbuild.scan.layer_scanner import LayerScanner
from stackbuild.scan.sources.decompress import CheckedLayer, plain_tar
from stackbuild.scan.sources.interface import Done, ImageDescription, LayerReader, T, commands_of

_REST = 1 << 20


class RegistrySource:
    """One platform of an image in a registry.

    Args:
        client: Reads registries.
        reference: For example ``nvidia/cuda:13.0.3-base-ubuntu24.04`` or ``repository@sha256:…``.
        platform: Of an index, the platform to read.
    """

    def __init__(self, client: RegistryClient, reference: str, *, platform: str = "linux/amd64") -> None:
        self._client, self._reference, self._platform = client, reference, platform
        self._image, tag, digest = split_reference(reference)
        resolved = (
            client.resolve_digest(self._image, digest)
            if digest
            else client.resolve(self._image, tag or "latest")
        )
        if resolved is None:
            raise LockError(
                f"the registry no longer has {digest}",
                code="digest-gone",
                where=reference,
                do="Name another digest.",
            )
        manifest_digest = resolved.platforms.get(platform)
        if manifest_digest is None:
            raise ScanError(
                f"the image is not there for {platform}",
                code="no-such-platform",
                where=reference,
                do=f"Name one of its platforms with --platform: {', '.join(sorted(resolved.platforms))}.",
            )
        manifest = client.manifest(self._image, manifest_digest)
        self._config_digest = str(manifest["config"]["digest"])
        self._config = client.config(self._image, self._config_digest)
        self._layers: Sequence[Mapping[str, Any]] = manifest.get("layers") or ()

    def describe(self) -> ImageDescription:
        """The image's description, from its configuration in the registry."""
        diff_ids = tuple((self._config.get("rootfs") or {}).get("diff_ids") or ())
        return ImageDescription(
            self._reference,
            self._config,
            diff_ids,
            self._config_digest,
            commands_of(self._config, len(diff_ids)),
        )

    def scan_layers(self, wanted: Sequence[str], done: Done) -> None:
        """Fetch and scan the wanted layers, lowest first."""
        self.read_layers(wanted, LayerScanner(), done)

    def read_layers(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        """Fetch and read the wanted layers, lowest first; each is checked against its digest."""
        remaining = set(wanted)
        for diff_id, layer in zip(self.describe().diff_ids, self._layers, strict=True):
            if diff_id not in remaining:
                continue
            remaining.discard(diff_id)
            where = f"{self._reference}: {layer['digest']}"
            with ChunkReader(self._client.blob(self._image, str(layer["digest"]))) as chunks:
                stream = io.BufferedReader(chunks, _REST)
                checked = CheckedLayer(plain_tar(stream, where), diff_id, where)
                found = reader.of_tar(checked, where=where)
                checked.check()
                while stream.read(_REST):  # what follows the compressed data counts for the blob's digest
                    pass
            done(diff_id, found)


def split_reference(reference: str) -> tuple[str, str, str]:
    """Repository, tag and digest of a reference; tag and digest may be empty."""
    name, _, digest = reference.partition("@")
    head, slash, last = name.rpartition("/")
    repository, _, tag = last.partition(":")
    return f"{head}{slash}{repository}", tag, digest
