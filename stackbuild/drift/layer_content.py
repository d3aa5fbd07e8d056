"""The content of one layer's files as hashes, with what a scan does not keep. Kept in the store by diff ID."""

from __future__ import annotations

import hashlib
import io
import json
import os
import posixpath
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from stackbuild.drift.normal_forms import LARGEST, form_of
from stackbuild.errors import ScanError
from stackbuild.layers.machine_unique import image_xattrs
from stackbuild.layers.tree import XATTR_PREFIX
from stackbuild.scan.entries import WHITEOUT, plain_path
from stackbuild.scan.layer_scanner import walk_folder
from stackbuild.scan.readers.debian import package_of_list
from stackbuild.scan.readers.text import lines
from stackbuild.scan.tar_stream import Member, Readable, Seekable, TarStream

# Counts up whenever something else is taken out, so that older records are not used.
RECORD_KIND = "layer-content-1"
_CHUNK = 1 << 20
_LARGEST_LIST = 64 << 20
# Linux, Documentation/filesystems/overlayfs.rst: the content lies in a lower layer's folder.
_ELSEWHERE = frozenset({"trusted.overlay.redirect", "trusted.overlay.metacopy"})


class FileContent(NamedTuple):
    """What is compared of one file beside its entry.

    Attributes:
        sha256: Of its content, in hex; empty for an empty file and for what has no content.
        normal: sha256 of its normal form; empty without one.
        mtime: Seconds since the epoch.
        xattrs: Hash of its extended attributes; empty without any.
    """

    sha256: str
    normal: str = ""
    mtime: int = 0
    xattrs: str = ""


@dataclass(frozen=True, slots=True)
class LayerContent:
    """The content of one layer.

    Attributes:
        files: Path without leading slash → its content; every name of a hard link, folders and links too.
        deb_files: Package and architecture as dpkg's lists name them → the paths of its list in this layer.
    """

    files: Mapping[str, FileContent]
    deb_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        """A record for the store: one text, as that of a scanned layer."""
        return {"layer": json.dumps([self.files, self.deb_files], separators=(",", ":"))}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> LayerContent:
        """The content that :meth:`to_record` wrote."""
        files, deb_files = json.loads(record["layer"])
        return cls(
            {path: FileContent._make(row) for path, row in files.items()},
            {name: tuple(paths) for name, paths in deb_files.items()},
        )


class ContentReader:
    """Reads the content of layers; one chunk of one file is in memory at a time."""

    def of_tar(
        self, stream: BinaryIO | Readable, *, seekable: bool = False, start: int = 0, where: str = ""
    ) -> LayerContent:
        """Read a layer's tar.

        Raises:
            ScanError: ``layer-damaged``.
        """
        found = _Found()
        tar = TarStream(
            stream, seekable=cast(Seekable, stream) if seekable else None, start=start, where=where
        )
        links: dict[str, str] = {}
        for member in tar:
            path = plain_path(member.name)
            if not path or posixpath.basename(path).startswith(WHITEOUT):
                continue
            if member.kind == "hardlink":
                links[path] = plain_path(member.linkname) or ""
                continue
            links.pop(path, None)
            found.add(
                path, _of_member(member), cast(IO[bytes], tar) if member.kind == "file" else None, member.size
            )
        for path in links:
            target = _end(path, links)
            if target in found.files:
                found.files[path] = found.files[target]
        return found.content()

    def of_folder(self, folder: Path, *, where: str = "") -> LayerContent:
        """Read a layer that overlayfs has as a folder.

        Raises:
            ScanError: ``layer-unreadable``.
        """
        found = _Found()
        inodes: dict[tuple[int, int], str] = {}
        try:
            for item, path in walk_folder(folder):
                status = item.stat(follow_symlinks=False)
                if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                    continue  # overlayfs's whiteout
                key = (status.st_dev, status.st_ino)
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and key in inodes:
                    found.files[path] = found.files[inodes[key]]
                    continue
                inodes[key] = path
                about = FileContent("", "", int(status.st_mtime), _xattrs_of(item.path))
                if stat.S_ISREG(status.st_mode):
                    with Path(item.path).open("rb", buffering=0) as stream:
                        found.add(path, about, cast(IO[bytes], stream), status.st_size)
                else:
                    found.add(path, about, None, 0)
        except OSError as error:
            raise ScanError(
                f"the engine's folder cannot be read: {error.strerror}", code="layer-unreadable", where=where
            ) from error
        return found.content()


class _Found:
    def __init__(self) -> None:
        self.files: dict[str, FileContent] = {}
        self._lists: dict[str, tuple[str, ...]] = {}

    def add(self, path: str, about: FileContent, stream: IO[bytes] | None, size: int) -> None:
        if stream is None or not size:
            self.files[path] = about
            return
        form = form_of(path)
        name, architecture = package_of_list(path)
        if (form is not None and size <= LARGEST) or (name and size <= _LARGEST_LIST):
            data = b"".join(_chunks(stream, size))
            about = about._replace(sha256=hashlib.sha256(data).hexdigest())
            written = form.write(data) if form is not None else None
            if written is not None:
                about = about._replace(normal=hashlib.sha256(written).hexdigest())
            if name:
                listed = (line.lstrip("/") for line in lines(io.BytesIO(data)))
                self._lists[f"{name}:{architecture}"] = tuple(path for path in listed if path)
        else:
            digest = hashlib.sha256()
            for chunk in _chunks(stream, size):
                digest.update(chunk)
            about = about._replace(sha256=digest.hexdigest())
        self.files[path] = about

    def content(self) -> LayerContent:
        return LayerContent(dict(sorted(self.files.items())), dict(sorted(self._lists.items())))


def _chunks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    left = size
    while left > 0:
        chunk = stream.read(min(_CHUNK, left))
        if not chunk:
            raise OSError(0, "a file ends before its size")
        left -= len(chunk)
        yield chunk


def _of_member(member: Member) -> FileContent:
    return FileContent("", "", member.mtime, _hash_of_xattrs(member.xattrs))


def _xattrs_of(path: str) -> str:
    names = os.listxattr(path, follow_symlinks=False)
    if not _ELSEWHERE.isdisjoint(names):
        raise OSError(0, "overlayfs keeps a part of it in another layer")
    values = ((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
    return _hash_of_xattrs(tuple((name, value.decode("utf-8", "backslashreplace")) for name, value in values))


def _hash_of_xattrs(pairs: tuple[tuple[str, str], ...]) -> str:
    kept = image_xattrs({f"{XATTR_PREFIX}{name}": value for name, value in pairs}) if pairs else ()
    return hashlib.sha256(repr(kept).encode()).hexdigest() if kept else ""


def _end(path: str, links: Mapping[str, str]) -> str:
    seen: set[str] = set()
    while path in links and path not in seen:
        seen.add(path)
        path = links[path]
    return path
