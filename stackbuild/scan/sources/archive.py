"""Saved images: a docker-archive or an OCI layout, as one tar or as a folder.

Docker's ``manifest.json``; OCI image layout specification 1.1 (``index.json``, ``blobs/``). An archive is
indexed first, so that only the layers that are wanted are read.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, Protocol, Self, cast

from stackbuild.counting import counted
from stackbuild.digests import digest_of
from stackbuild.errors import ScanError
from stackbuild.scan.entries import plain_path
from stackbuild.scan.layer_scanner import LayerScanner
from stackbuild.scan.sources.decompress import CheckedLayer, LimitedFile, compression_of, plain_tar
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
from stackbuild.scan.sources.oci_index import entry_of, has_several
from stackbuild.scan.tar_stream import Member, TarStream

_LARGEST_DOCUMENT = 16 << 20
_CHUNK = 1 << 20
_MOST_MEMBERS = 100_000
_SHA256_BLOBS = "blobs/sha256/"


class Files(Protocol):
    """The files of a saved image, by name."""

    def find(self, name: str) -> tuple[IO[bytes], int, int] | None:
        """An open file, where the content begins in it, and its size; None when there is no such file."""


class FolderFiles:
    """An unpacked archive or an OCI layout on disk."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        self._folder, self._closing = folder, closing

    def find(self, name: str) -> tuple[IO[bytes], int, int] | None:
        """A file of the folder; names that leave it are not found."""
        path = plain_path(name)
        if not path or not (self._folder / path).is_file():
            return None
        stream = self._closing.enter_context((self._folder / path).open("rb"))
        return stream, 0, (self._folder / path).stat().st_size


class TarFiles:
    """An archive that can be sought.

    Raises:
        ScanError: ``archive-damaged``.
    """

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._stream = stream
        self._members: dict[str, Member] = {}
        stream.seek(0)
        try:
            for member in TarStream(stream, seekable=stream, where=where):
                path = plain_path(member.name)
                if path and len(self._members) < _MOST_MEMBERS:
                    self._members[path] = member
        except ScanError as error:
            raise archive_damaged(where, error.detail) from error

    def find(self, name: str) -> tuple[IO[bytes], int, int] | None:
        """A member; docker-archives keep equal layers once and link to them."""
        for _ in range(8):
            member = self._members.get(name)
            if member is None:
                return None
            if member.kind == "file":
                return self._stream, member.offset, member.size
            if member.kind == "symlink":
                name = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
            else:
                name = plain_path(member.linkname) or ""
        return None


def archive_damaged(where: str, detail: str) -> ScanError:
    """The error of an archive that breaks off or lacks what it names."""
    return ScanError(
        "the archive is damaged or cut off",
        code="archive-damaged",
        where=where,
        detail=detail,
        do="Save the image again: docker save -o FILE IMAGE.",
    )


class ArchiveSource(AbstractContextManager["ArchiveSource"]):
    """A saved image. Use it as a context manager.

    Args:
        path: A tar (plain, or compressed with gzip or zstd) or a folder.
        wanted: Name or digest of the image where the archive holds several.
        platform: Of an index, the platform to read.
        temporary: Where a compressed archive is unpacked; the system's folder when None.

    Raises:
        ScanError: ``archive-damaged``, ``archive-unknown``, ``archive-has-several``, ``no-such-platform``;
            ``layer-bomb`` for a compressed archive that grows beyond measure.
    """

    def __init__(
        self,
        path: Path,
        *,
        wanted: str = "",
        platform: str = "linux/amd64",
        temporary: Path | None = None,
    ) -> None:
        self._path, self._wanted, self._platform = path, wanted, platform
        self._closing = ExitStack()
        try:
            self._files = self._open(temporary)
            self._layers: tuple[str, ...] = ()
            self._description = self._read()
        except BaseException:
            self._closing.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def describe(self) -> ImageDescription:
        """The image's description."""
        return self._description

    def scan_layers(self, wanted: Sequence[str], done: Done) -> None:
        """Scan the wanted layers, lowest first."""
        self.read_layers(wanted, LayerScanner(), done)

    def read_layers(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        """Read the wanted layers, lowest first."""
        remaining = set(wanted)
        for diff_id, name in zip(self._description.diff_ids, self._layers, strict=True):
            if diff_id not in remaining:
                continue
            remaining.discard(diff_id)
            found = self._files.find(name)
            if found is None:
                raise archive_damaged(str(self._path), f"it lacks the layer {name}")
            stream, start, size = found
            where = f"{self._path}: {name}"
            layer = CheckedLayer(plain_tar(LimitedFile(stream, start, size), where), diff_id, where)
            found_in = reader.of_tar(layer, where=where)
            layer.check()
            done(diff_id, found_in)

    def _open(self, temporary: Path | None) -> Files:
        if self._path.is_dir():
            return FolderFiles(self._path, self._closing)
        stream = self._closing.enter_context(self._path.open("rb"))
        if not compression_of(stream.read(4)):
            return TarFiles(stream, str(self._path))
        stream.seek(0)
        copy = self._closing.enter_context(tempfile.TemporaryFile(dir=temporary))  # noqa: SIM115
        try:
            with plain_tar(stream, str(self._path)) as unpacked:
                while block := unpacked.read(_CHUNK):
                    copy.write(block)
        except ScanError as error:
            if error.code != "layer-damaged":
                raise
            raise archive_damaged(str(self._path), error.detail) from error
        return TarFiles(cast(BinaryIO, copy), str(self._path))

    def _document(self, name: str) -> Any:
        """A JSON document of the archive; None where it is not there."""
        data = self._bytes(name)
        try:
            return None if data is None else json.loads(data)
        except (ValueError, RecursionError) as error:
            raise archive_damaged(str(self._path), f"{name} is not JSON") from error

    def _bytes(self, name: str) -> bytes | None:
        """A small file of the archive, held against the digest that a blob is called by."""
        found = self._files.find(name)
        if found is None:
            return None
        stream, start, size = found
        if size > _LARGEST_DOCUMENT:
            raise archive_damaged(str(self._path), f"{name} has {size} bytes")
        stream.seek(start)
        data = stream.read(size)
        if name.startswith(_SHA256_BLOBS) and hashlib.sha256(data).hexdigest() != posixpath.basename(name):
            raise archive_damaged(str(self._path), f"{name} has another content than its name says")
        return data

    def _read(self) -> ImageDescription:
        manifests = self._document("manifest.json")
        if isinstance(manifests, list):
            entry = self._one_of(mappings(manifests))
            self._layers = tuple(str(name) for name in sequence(entry.get("Layers")))
            return self._described(str(entry.get("Config", "")))
        index = self._document("index.json")
        if isinstance(index, Mapping):
            manifest = self._manifest(index)
            self._layers = tuple(_blob(layer) for layer in mappings(manifest.get("layers")))
            return self._described(_blob(manifest.get("config")))
        raise ScanError(
            "this is neither a saved image nor an OCI layout: it has no manifest.json and no index.json",
            code="archive-unknown",
            where=str(self._path),
            do="Name an archive that docker save, skopeo or buildx wrote, or an image.",
        )

    def _one_of(self, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        wanted = self._wanted
        named = [entry for entry in entries if not wanted or wanted in _tags(entry)]
        if len(named) == 1:
            return named[0]
        tags = sorted({tag for entry in named or entries for tag in _tags(entry)})
        if wanted and not named:
            raise has_several(str(self._path), f"no image of the archive is called {wanted}", tags)
        raise has_several(str(self._path), f"the archive holds {len(named)} images that fit", tags)

    def _manifest(self, index: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = self._wanted
        for _ in range(4):  # an index can hold indexes; more than that nobody makes
            entry = entry_of(
                index.get("manifests"), wanted=wanted, platform=self._platform, where=str(self._path)
            )
            document = self._document(_blob(entry))
            if not isinstance(document, Mapping):
                raise archive_damaged(str(self._path), f"it lacks {entry.get('digest')}")
            if "manifests" not in document:
                return document
            index, wanted = document, ""  # an index has a name, and its platforms have none
        raise archive_damaged(str(self._path), "its indexes lead nowhere")

    def _described(self, name: str) -> ImageDescription:
        data = self._bytes(name)
        config = self._document(name)
        if data is None or not isinstance(config, Mapping):
            raise archive_damaged(str(self._path), f"it lacks its configuration {name}")
        listed = sequence(mapping(config.get("rootfs")).get("diff_ids"))
        diff_ids = tuple(str(diff_id) for diff_id in listed)
        if len(diff_ids) != len(self._layers):
            raise archive_damaged(
                str(self._path),
                f"{counted(len(self._layers), 'layer')} for {counted(len(diff_ids), 'diff ID')} in its configuration",
            )
        digest = digest_of(data)
        return ImageDescription(str(self._path), config, diff_ids, digest, commands_of(config, len(diff_ids)))


def _blob(descriptor: Any) -> str:
    return f"blobs/{str(mapping(descriptor).get('digest', '')).replace(':', '/', 1)}"


def _tags(entry: Mapping[str, Any]) -> list[str]:
    return [str(tag) for tag in sequence(entry.get("RepoTags"))]
