"""Scanning one layer, from its tar or from the folder an engine unpacked it to. Both give the same record."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from stackbuild.errors import ScanError
from stackbuild.scan.entries import OPAQUE, WHITEOUT, FileEntry, paths_below, plain_path
from stackbuild.scan.examine import SMALL, Examined, examine, examine_small, is_wanted
from stackbuild.scan.hard_links import settle_hard_links
from stackbuild.scan.layer import MOST_ENTRIES, ScannedLayer
from stackbuild.scan.record_check import settle_records
from stackbuild.scan.tar_stream import Member, Readable, Seekable, TarStream
from stackbuild.sizes import size_text

# Past these a layer is a hostile one: the largest real images have names of some 80 bytes.
_MOST_NAME_BYTES = 250_000_000
_LONGEST_PATH = 4096  # PATH_MAX of Linux (limits.h): no process can open a longer one


class _Builder:
    """Collects a layer's paths."""

    def __init__(self, where: str, most_entries: int) -> None:
        self._where, self._most_entries = where, most_entries
        self._count = self._name_bytes = 0
        self.entries: dict[str, FileEntry] = {}
        self.deleted: list[str] = []
        self.opaque: list[str] = []
        self.examined = Examined()
        self._replaced_folders: set[str] = set()

    def takes(self, name: str, linkname: str = "") -> bool:
        """Count one path, also of what is left out or deletes another; False for one that no process can open.

        Raises:
            ScanError: ``layer-too-large``.
        """
        self._count += 1
        self._name_bytes += len(name) + len(linkname)
        if self._count > self._most_entries:
            raise self._too_large(f"more than {self._most_entries:,} files")
        if self._name_bytes > _MOST_NAME_BYTES:
            raise self._too_large(f"names of more than {size_text(_MOST_NAME_BYTES)}")
        if len(name) <= _LONGEST_PATH and len(linkname) <= _LONGEST_PATH:
            return True
        self.refuse(name, f"it or its link is longer than {_LONGEST_PATH} bytes")
        return False

    def _too_large(self, what: str) -> ScanError:
        return ScanError(
            f"it has {what}",
            code="layer-too-large",
            where=self._where,
            do="Look at what makes them; no image that is meant to be used has so many.",
        )

    def add(self, path: str, entry: FileEntry) -> None:
        """Take a path in, before its content is read. The last of several entries of one path counts."""
        before = self.entries.pop(path, None)
        if before is not None:
            self._forget(path)
            if before.kind == "dir" and entry.kind != "dir":
                self._replaced_folders.add(path)
        self.entries[path] = entry

    def refuse(self, name: str, why: str) -> None:
        self.examined.problems.add(f"{name[:200]!r} was left out: {why}")

    def _forget(self, path: str) -> None:
        for found in self.examined.facts.values():
            found.pop(path, None)

    def _remove_below_files(self) -> None:
        """Remove what was in a folder before a file or link came in its place: whoever unpacks it removes it, too."""
        order = {path: number for number, path in enumerate(self.entries)}
        replaced = [path for path in self._replaced_folders if self.entries[path].kind != "dir"]
        for folder, paths in paths_below(replaced, order):
            for path in paths:
                if order[path] < order[folder]:
                    del self.entries[path]
                    self._forget(path)

    def _add_missing_folders(self) -> None:
        """Add the folders that the tar leaves out: whoever unpacks it makes them, and so an engine has them.

        Raises:
            ScanError: ``layer-too-large``.
        """
        for path in [*self.entries, *self.deleted, *(f"{folder}/" for folder in self.opaque)]:
            folder = path.rpartition("/")[0]
            while folder and folder not in self.entries and self.takes(folder):
                self.entries[folder] = FileEntry("dir", 0o755)
                folder = folder.rpartition("/")[0]

    def finish(self) -> ScannedLayer:
        if self._replaced_folders:
            self._remove_below_files()
        self._add_missing_folders()
        settle_hard_links(self.entries, self.examined.facts)
        settle_records(self.entries, self.examined.facts)
        return ScannedLayer(
            entries=dict(sorted(self.entries.items())),
            deleted=tuple(sorted(self.deleted)),
            opaque=tuple(sorted(self.opaque)),
            facts={name: dict(sorted(found.items())) for name, found in sorted(self.examined.facts.items())},
            problems=self.examined.problems.sentences(),
        )


class LayerScanner:
    """Reads layers as :func:`scan_tar` and :func:`scan_folder` do."""

    def of_tar(
        self, stream: BinaryIO | Readable, *, seekable: bool = False, start: int = 0, where: str = ""
    ) -> ScannedLayer:
        """Scan a layer's tar."""
        return scan_tar(stream, seekable=seekable, start=start, where=where)

    def of_folder(self, folder: Path, *, where: str = "") -> ScannedLayer:
        """Scan a layer's folder."""
        return scan_folder(folder, where=where)


def scan_tar(
    stream: BinaryIO | Readable,
    *,
    seekable: bool = False,
    start: int = 0,
    where: str = "",
    most_entries: int = MOST_ENTRIES,
) -> ScannedLayer:
    """Scan a layer's tar in one pass.

    Args:
        stream: The tar, not compressed, at its beginning.
        seekable: Whether the stream can be sought; then content that nobody wants is not read.
        start: Where the tar begins in a seekable stream.
        where: What the layer is, for errors.
        most_entries: The limit on its paths.

    Raises:
        ScanError: ``layer-damaged``, ``layer-too-large``.
    """
    builder = _Builder(where, most_entries)
    tar = TarStream(stream, seekable=cast(Seekable, stream) if seekable else None, start=start, where=where)
    for member in tar:
        if not builder.takes(member.name, member.linkname):
            continue
        path = plain_path(member.name)
        if path is None:
            builder.refuse(member.name, "its path leaves the image")
        elif path:
            _add_member(path, member, tar, stream, builder, seekable=seekable)
    return builder.finish()


def _add_member(
    path: str,
    member: Member,
    tar: TarStream,
    stream: BinaryIO | Readable,
    builder: _Builder,
    *,
    seekable: bool,
) -> None:
    folder, _, name = path.rpartition("/")
    if name.startswith(WHITEOUT):
        if name == OPAQUE:
            builder.opaque.append(folder)
        elif name == WHITEOUT:
            builder.refuse(member.name, "it deletes and does not say what")
        elif not name.startswith(".wh..wh."):  # other names of that form are a driver's own notes
            builder.deleted.append(f"{folder}/{name[len(WHITEOUT) :]}".lstrip("/"))
        return
    linkname = member.linkname
    if member.kind == "hardlink":
        target = plain_path(linkname)
        if not target:
            builder.refuse(member.name, "its hard link leaves the image")
            return
        linkname = target
    elif member.kind != "symlink":
        linkname = ""
    size = member.size if member.kind == "file" else 0
    # Linux ignores a link's own mode, and tars give it what they like.
    mode = 0o777 if member.kind == "symlink" else member.mode
    builder.add(path, FileEntry(member.kind, mode, member.uid, member.gid, size, linkname))
    if member.kind != "file" or not is_wanted(path, size):
        return
    if member.sparse:
        builder.examined.problems.add(f"/{path} is stored as a sparse file and was not read")
    elif seekable:
        seekable_stream = cast(BinaryIO, stream)
        seekable_stream.seek(member.offset)
        examine(path, size, seekable_stream, member.offset, builder.examined)
        seekable_stream.seek(member.offset)
    else:
        examine(path, size, cast(BinaryIO, tar), None, builder.examined)


def scan_folder(folder: Path, *, where: str = "", most_entries: int = MOST_ENTRIES) -> ScannedLayer:
    """Scan a layer that overlayfs has as a folder.

    Linux, Documentation/filesystems/overlayfs.rst: a whiteout is a character device 0/0, an opaque
    directory has the attribute ``trusted.overlay.opaque``.

    Args:
        folder: The layer's ``diff`` folder.
        where: What the layer is, for errors.
        most_entries: The limit on its paths.

    Raises:
        ScanError: ``layer-too-large``; ``layer-unreadable`` where this user may not read it or a
            directory is stored as a redirection.
    """
    builder = _Builder(where, most_entries)
    links: dict[tuple[int, int], list[tuple[str, str]]] = {}
    try:
        for item, path in walk_folder(folder):
            _add_item(item, path, links, builder)
        for names in links.values():
            _add_linked(names, builder)
    except OSError as error:
        raise ScanError(
            f"the engine's folder cannot be read: {error.strerror}", code="layer-unreadable", where=where
        ) from error
    return builder.finish()


def walk_folder(folder: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Everything in a folder with its path below it; a name that is not UTF-8 is written out.

    Raises:
        OSError: This user may not read all of it.
    """
    pending = [(os.fspath(folder), "")]
    while pending:
        real, prefix = pending.pop()
        with os.scandir(real) as items:
            for item in items:
                path = prefix + os.fsencode(item.name).decode("utf-8", "backslashreplace")
                yield item, path
                if item.is_dir(follow_symlinks=False):
                    pending.append((item.path, f"{path}/"))


def _add_item(
    item: os.DirEntry[str],
    path: str,
    links: dict[tuple[int, int], list[tuple[str, str]]],
    builder: _Builder,
) -> None:
    if not builder.takes(path):
        return
    status = item.stat(follow_symlinks=False)
    mode, uid, gid = status.st_mode & 0o7777, status.st_uid, status.st_gid
    if stat.S_ISREG(status.st_mode):
        if status.st_nlink > 1:
            links.setdefault((status.st_dev, status.st_ino), []).append((path, item.path))
            return
        builder.add(path, FileEntry("file", mode, uid, gid, status.st_size))
        if is_wanted(path, status.st_size):
            _read_item(item.path, path, status.st_size, builder.examined)
    elif stat.S_ISDIR(status.st_mode):
        builder.add(path, FileEntry("dir", mode, uid, gid))
        names = os.listxattr(item.path, follow_symlinks=False)
        if "trusted.overlay.redirect" in names:
            raise OSError(0, "a directory is stored as a redirection")
        if "trusted.overlay.opaque" in names and os.getxattr(item.path, "trusted.overlay.opaque") == b"y":
            builder.opaque.append(path)
    elif stat.S_ISLNK(status.st_mode):
        target = os.fsencode(Path(item.path).readlink()).decode("utf-8", "backslashreplace")
        builder.add(path, FileEntry("symlink", 0o777, uid, gid, 0, target))
    elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        builder.deleted.append(path)
    else:
        builder.add(path, FileEntry("other", mode, uid, gid))


def _add_linked(names: list[tuple[str, str]], builder: _Builder) -> None:
    """One file of several names: read by the name that a tar of this folder would have first, in the order of a walk."""
    path, real = min(names, key=lambda name: name[0].split("/"))
    status = os.lstat(real)
    mode, uid, gid = status.st_mode & 0o7777, status.st_uid, status.st_gid
    builder.add(path, FileEntry("file", mode, uid, gid, status.st_size))
    if is_wanted(path, status.st_size):
        _read_item(real, path, status.st_size, builder.examined)
    for other, _ in names:
        if other != path:
            builder.add(other, FileEntry("hardlink", mode, uid, gid, 0, path))


def _read_item(real: str, path: str, size: int, examined: Examined) -> None:
    if size > SMALL:
        with Path(real).open("rb", buffering=0) as stream:
            examine(path, size, cast(BinaryIO, stream), 0, examined)
        return
    # There are tens of thousands of small files: a file object for each costs more than reading it.
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        examine_small(path, os.read(descriptor, size), examined)
    finally:
        os.close(descriptor)
