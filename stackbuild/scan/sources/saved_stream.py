"""An archive that an engine is writing, read as it comes: layers are read while the engine packs the next ones.

``docker save`` names its layers only in ``manifest.json`` at the end, so every one is read; nothing is written to disk.
Engines up to 24 write ``ID/layer.tar``, equal layers once and links to them; newer ones an OCI layout beside the manifest.
"""

from __future__ import annotations

import io
import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Generic

from stackbuild.errors import ScanError
from stackbuild.scan.entries import plain_path
from stackbuild.scan.sources.decompress import plain_tar
from stackbuild.scan.sources.interface import LayerReader, T
from stackbuild.scan.tar_stream import TarStream

_LARGEST_DOCUMENT = 16 << 20
_BLOCK = 512


class SavedStream(Generic[T]):
    """Reads the layers of one saved image in one pass.

    Args:
        stream: The archive, at its beginning.
        where: What it is, for errors.
    """

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        self._documents: dict[str, bytes] = {}
        self._links: dict[str, str] = {}
        self._layers: dict[str, T] = {}

    def read_layers(
        self,
        diff_ids: Sequence[str],
        wanted: Sequence[str],
        reader: LayerReader[T],
        done: Callable[[str, T], None],
    ) -> None:
        """Read the archive to its end and hand over the layers that are wanted.

        Args:
            diff_ids: The image's layers, lowest first; the archive lists them in the same order.
            wanted: Those of them to hand over.
            reader: Reads each.
            done: Called with each one's diff ID, in the image's order.

        Raises:
            ScanError: ``archive-damaged``, and what a layer's own damage raises.
        """
        self._read(reader)
        names = self._names()
        if len(names) != len(diff_ids):
            raise self._damaged(f"it has {len(names)} layers, and the image {len(diff_ids)}")
        remaining = set(wanted)
        for diff_id, name in zip(diff_ids, names, strict=True):
            if diff_id not in remaining:
                continue
            remaining.discard(diff_id)
            layer = self._layers.get(self._target(name))
            if layer is None:
                raise self._damaged(f"it lacks the layer {name}")
            done(diff_id, layer)

    def _read(self, reader: LayerReader[T]) -> None:
        archive = TarStream(self._stream, where=self._where)
        for member in archive:
            path = plain_path(member.name)
            if not path:
                continue
            if member.kind in ("symlink", "hardlink"):
                folder = posixpath.dirname(path) if member.kind == "symlink" else ""
                self._links[path] = posixpath.normpath(posixpath.join(folder, member.linkname))
            elif member.kind == "file":
                content = io.BufferedReader(_Content(archive), 1 << 20)
                if _is_document(path, content.peek(_BLOCK)[:_BLOCK]):
                    if member.size > _LARGEST_DOCUMENT:
                        raise self._damaged(f"{path} has {member.size} bytes")
                    self._documents[path] = content.read()
                else:
                    where = f"{self._where}: {path}"
                    self._layers[path] = reader.of_tar(plain_tar(content, where), where=where)

    def _names(self) -> list[str]:
        manifest: Any = None
        try:
            manifest = json.loads(self._documents.get("manifest.json", b"null"))
        except ValueError as error:
            raise self._damaged("its manifest.json is not JSON") from error
        entry = manifest[0] if isinstance(manifest, list) and manifest else None
        layers = entry.get("Layers") if isinstance(entry, Mapping) else None
        if not isinstance(layers, list):
            raise self._damaged("its manifest.json names no layers")
        return [str(name) for name in layers]

    def _target(self, name: str) -> str:
        for _ in range(8):
            if name not in self._links:
                break
            name = self._links[name]
        return name

    def _damaged(self, detail: str) -> ScanError:
        return ScanError(
            "the engine's archive of the image is damaged or cut off",
            code="archive-damaged",
            where=self._where,
            detail=detail,
            do="Scan again; if it stays so, look at the engine's log.",
        )


class _Content(io.RawIOBase):
    """What is left of an archive's current member."""

    def __init__(self, archive: TarStream) -> None:
        super().__init__()
        self._archive = archive

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._archive.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _is_document(path: str, head: bytes) -> bool:
    """Whether a file is JSON: blobs have no names that tell, but a tar has its mark and compressed data its own."""
    if not path.startswith("blobs/"):
        return not path.endswith(".tar")
    return head[257:262] != b"ustar" and head.lstrip()[:1] in (b"{", b"[")
