"""An image in a registry, read without pulling it: only layers that were never scanned are fetched."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from stackbuild.counting import counted
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.errors import LockError, ScanError
from stackbuild.registry.client import RegistryClient
from stackbuild.scan.layer_scanner import LayerScanner
from stackbuild.scan.sources.decompress import CheckedLayer, plain_tar
from stackbuild.scan.sources.interface import (
    Done,
    ImageDescription,
    LayerReader,
    T,
    commands_of,
    mapping,
    mappings,
    sequence,
)

_REST = 1 << 20


class RegistrySource:
    """One platform of an image in a registry.

    Args:
        client: Reads registries.
        reference: For example ``nvidia/cuda:13.0.3-base-ubuntu24.04`` or ``repository@sha256:…``.
        platform: Of an index, the platform to read.

    Raises:
        LockError: ``digest-gone``.
        ScanError: ``no-such-platform``; ``archive-damaged`` for what is no image.
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
        self._config_digest = str(mapping(manifest.get("config")).get("digest", ""))
        if not self._config_digest:
            raise self._unfit("the manifest names no configuration")
        self._config = client.config(self._image, self._config_digest)
        self._layers = tuple(str(layer.get("digest", "")) for layer in mappings(manifest.get("layers")))
        self._diff_ids = tuple(map(str, sequence(mapping(self._config.get("rootfs")).get("diff_ids"))))
        if len(self._layers) != len(self._diff_ids):
            layers, diff_ids = (
                counted(len(self._layers), "layer"),
                counted(len(self._diff_ids), "diff ID"),
            )
            raise self._unfit(f"{layers} for {diff_ids} in its configuration")

    def describe(self) -> ImageDescription:
        """The image's description, from its configuration in the registry."""
        return ImageDescription(
            self._reference,
            self._config,
            self._diff_ids,
            self._config_digest,
            commands_of(self._config, len(self._diff_ids)),
        )

    def _unfit(self, detail: str) -> ScanError:
        return ScanError(
            "this is no image whose layers can be told: its manifest and configuration do not fit together",
            code="archive-damaged",
            where=self._reference,
            detail=detail,
            do="Check the name: registries keep charts and other things, too. Else push the image again.",
        )

    def scan_layers(self, wanted: Sequence[str], done: Done) -> None:
        """Fetch and scan the wanted layers, lowest first."""
        self.read_layers(wanted, LayerScanner(), done)

    def read_layers(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        """Fetch and read the wanted layers, lowest first; each is checked against its digest."""
        remaining = set(wanted)
        for diff_id, layer in zip(self._diff_ids, self._layers, strict=True):
            if diff_id not in remaining:
                continue
            remaining.discard(diff_id)
            where = f"{self._reference}: {layer}"
            with ChunkReader(self._client.blob(self._image, layer)) as chunks:
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
