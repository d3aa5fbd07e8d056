"""The one writer of layer tars: deterministic, streaming, and aware of the tree below (DESIGN §3.2).

Same calls, same bytes: constant mtimes, numeric owners only, no other times.
"""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import replace
from io import BytesIO
from typing import Protocol

from stackbuild.errors import BuildError
from stackbuild.layers.paths import WHITEOUT_PREFIX, check_path
from stackbuild.layers.tar_blocks import CHUNK, Sink, TarBlocks
from stackbuild.layers.tree import (
    ACCOUNT_FILES,
    XATTR_PREFIX,
    Additions,
    Entry,
    FileTree,
    check_one_writer,
    resolve_path,
)

__all__ = ["MTIME", "LayerTarWriter", "Sink"]

# Every mtime in every layer, in seconds since 1970: a constant, so that a new lock leaves other layers alone.
MTIME = 1_700_000_000

Xattrs = tuple[tuple[str, str], ...]


class Source(Protocol):
    """A readable stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""


class LayerTarWriter:
    """Writes one layer over ``tree``.

    Parents are resolved through the tree's symlinks and emitted before their content: existing ones with
    their own mode, owner and xattrs, missing ones as root's with 0755. Entries come out in the order in
    which they are added, so callers add them sorted, and a directory before what is in it.

    Args:
        sink: Takes the tar's bytes.
        tree: The file system below.
        mtime: Seconds since 1970 for every entry.
        mirror: True when the entries mirror what a real program made of the tree (apt): then links and
            directories of the tree may be replaced, and directories' attributes changed.
    """

    def __init__(self, sink: Sink, tree: FileTree, *, mtime: int = MTIME, mirror: bool = False) -> None:
        self._blocks = TarBlocks(sink)
        self._tree = tree
        self._mtime = mtime
        self._mirror = mirror
        self._written: dict[str, Entry | None] = {}
        self._resolved: dict[str, str] = {}  # parent as given -> as resolved and emitted

    @property
    def empty(self) -> bool:
        """True while nothing was added; such a layer must not be kept."""
        return not self._written

    def add_file(
        self,
        path: str,
        data: bytes | Source,
        size: int,
        mode: int,
        uid: int = 0,
        gid: int = 0,
        xattrs: Xattrs = (),
        *,
        owner: str = "",
    ) -> str:
        """Add a regular file.

        Args:
            path: Relative to the root of the image, without leading slash.
            data: Its content, streamed in blocks.
            size: Exact length of the content in bytes.
            mode: Permission bits.
            uid: Numeric owner.
            gid: Numeric group.
            xattrs: (name, value) pairs, as in :class:`Entry`.
            owner: Who writes it, for messages and conflict checks.

        Returns:
            The content's sha256 in hex.

        Raises:
            BuildError: for a path that is refused, a conflict, or content that is not ``size`` bytes long.
        """
        full = self._place(path, owner)
        again = full in self._written
        if not again:
            self._check_replaced(full, "file")
            self._emit_header(full, tarfile.REGTYPE, mode, uid, gid, size=size, xattrs=xattrs)
        text = ""
        if full in ACCOUNT_FILES:
            data = data if isinstance(data, bytes) else data.read(size + 1)
            text = data.decode("utf-8", "surrogateescape")
        sha256 = self._copy(full, data, size, owner, keep=not again)
        self._record(full, Entry("file", mode, uid, gid, "", xattrs, owner, sha256, text))
        return sha256

    def add_directory(
        self,
        path: str,
        mode: int = 0o755,
        uid: int = 0,
        gid: int = 0,
        xattrs: Xattrs = (),
        *,
        owner: str = "",
    ) -> None:
        """Add a directory; one that exists already keeps its attributes (unless the writer mirrors).

        Raises:
            BuildError: for a path that is refused or is taken by a file.
        """
        check_path(path, owner)
        if not self._mirror:
            path = resolve_path(path, self._lookup, follow_last=True)
            below = self._tree.get(path)
            if below is not None and below.kind == "dir" and self._written.get(path, below) == below:
                return
        full = self._place(path, owner)
        entry = Entry("dir", mode, uid, gid, "", xattrs, owner)
        if full in self._written:
            before = self._written[full]
            if before is None or replace(before, owner=owner) != entry:
                raise _conflict(full, before, owner)
            return
        self._check_replaced(full, "dir")
        self._emit_header(full, tarfile.DIRTYPE, mode, uid, gid, xattrs=xattrs)
        self._written[full] = entry

    def add_symlink(
        self,
        path: str,
        target: str,
        uid: int = 0,
        gid: int = 0,
        xattrs: Xattrs = (),
        *,
        owner: str = "",
    ) -> None:
        """Add a symbolic link whose text is ``target``.

        Raises:
            BuildError: for a path that is refused or is taken.
        """
        full = self._place(path, owner)
        if full not in self._written:
            self._check_replaced(full, "symlink")
            self._emit_header(full, tarfile.SYMTYPE, 0o777, uid, gid, linkname=target, xattrs=xattrs)
        self._record(full, Entry("symlink", 0o777, uid, gid, target, xattrs, owner))
        self._resolved.clear()

    def add_hardlink(self, path: str, target: str, *, owner: str = "") -> None:
        """Add a second name of a file that this layer already holds.

        Raises:
            BuildError: ``hardlink-target-missing`` when ``target`` is not a file of this layer: engines
                unpack a layer by itself, so it could not be linked.
        """
        full = self._place(path, owner)
        target_full = resolve_path(target.lstrip("/"), self._lookup)
        entry = self._written.get(target_full)
        if entry is None or entry.kind != "file":
            raise BuildError(
                f"/{full} is a hard link to /{target_full}, which is not a file of the same layer",
                code="hardlink-target-missing",
                do="Write the file itself in place of the link.",
            )
        if full not in self._written:
            self._check_replaced(full, "file")
            self._emit_header(full, tarfile.LNKTYPE, entry.mode, entry.uid, entry.gid, linkname=target_full)
        self._record(full, entry)

    def add_whiteout(self, path: str) -> None:
        """Delete ``path`` of the layers below; only the debs maker may, mirroring what apt removed.

        Raises:
            BuildError: ``whiteout-refused`` from any other maker, or for a path this layer writes.
        """
        full = self._place(path, "")
        if not self._mirror or full in self._written:
            raise BuildError(f"/{full} may not be deleted by this layer", code="whiteout-refused")
        parent, _, name = full.rpartition("/")
        marker = f"{parent}/{WHITEOUT_PREFIX}{name}" if parent else f"{WHITEOUT_PREFIX}{name}"
        self._emit_header(marker, tarfile.REGTYPE, 0, 0, 0)
        self._written[full] = None
        self._resolved.clear()

    def close(self) -> Additions:
        """End the tar.

        Returns:
            What the layer adds to the tree; empty when the layer must not be kept.
        """
        self._blocks.end()
        return self._written

    def _lookup(self, path: str) -> Entry | None:
        return self._written[path] if path in self._written else self._tree.get(path)

    def _place(self, path: str, owner: str) -> str:
        """The path with its parents resolved, once those are emitted."""
        parent, _, name = path.rpartition("/")
        full_parent = self._resolved.get(parent)
        if full_parent is None or name in ("", ".", "..") or name.startswith(WHITEOUT_PREFIX) or "\0" in name:
            check_path(path, owner)
            full_parent = resolve_path(parent, self._lookup, follow_last=True)
            self._emit_parents(full_parent, path)
            self._resolved[parent] = full_parent
        return f"{full_parent}/{name}" if full_parent else name

    def _emit_parents(self, directory: str, path: str) -> None:
        parts = directory.split("/") if directory else []
        for count in range(1, len(parts) + 1):
            here = "/".join(parts[:count])
            if here in self._written:
                if (entry := self._written[here]) is None or entry.kind != "dir":
                    raise _not_a_directory(path, here)
                continue
            entry = self._tree.get(here)
            if entry is None:
                entry = Entry("dir", 0o755)
            elif entry.kind != "dir":
                raise _not_a_directory(path, here)
            self._emit_header(here, tarfile.DIRTYPE, entry.mode, entry.uid, entry.gid, xattrs=entry.xattrs)
            self._written[here] = entry

    def _check_replaced(self, path: str, kind: str) -> None:
        """Refuse to replace a link or directory of the tree, or a file by something else."""
        before = self._tree.get(path)
        if before is None or self._mirror or before.kind == kind == "file":
            return
        if before.kind == kind == "symlink" and before.owner:
            return  # a link of an earlier layer of ours: _record compares the targets
        names = {"dir": "a directory", "symlink": "a symbolic link", "file": "a file", "other": "a device"}
        raise BuildError(
            f"/{path} is {names[before.kind]} in the layers below and would be replaced by {names[kind]}",
            code="path-taken",
            do="Choose another path"
            + (f", or write to what the link points at ({before.linkname})." if before.linkname else "."),
        )

    def _record(self, path: str, entry: Entry) -> None:
        if path in self._written:
            before = self._written[path]
            if before is None or (before.kind, before.sha256, before.linkname) != (
                entry.kind,
                entry.sha256,
                entry.linkname,
            ):
                raise _conflict(path, before, entry.owner)
            return
        check_one_writer(path, self._tree.get(path), entry)
        self._written[path] = entry

    def _emit_header(
        self,
        path: str,
        kind: bytes,
        mode: int,
        uid: int,
        gid: int,
        *,
        size: int = 0,
        linkname: str = "",
        xattrs: Xattrs = (),
    ) -> None:
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.uid, info.gid = kind, mode & 0o7777, uid, gid
        info.size, info.linkname, info.mtime = size, linkname, self._mtime
        info.pax_headers = {XATTR_PREFIX + name: value for name, value in sorted(xattrs)}
        self._blocks.header(info)

    def _copy(self, path: str, data: bytes | Source, size: int, owner: str, *, keep: bool) -> str:
        """Pass ``data`` on in blocks while hashing it, then pad to a whole tar block."""
        stream = BytesIO(data) if isinstance(data, bytes) else data
        digest = hashlib.sha256()
        left = size
        while left:
            block = stream.read(min(left, CHUNK))
            if not block:
                raise _wrong_size(path, owner, size, "ends early")
            left -= len(block)
            digest.update(block)
            if keep:
                self._blocks.content(block)
        if stream.read(1):
            raise _wrong_size(path, owner, size, "goes on")
        if keep:
            self._blocks.pad()
        return digest.hexdigest()


def _conflict(path: str, before: Entry | None, owner: str) -> BuildError:
    if before is not None and before.kind == "dir":
        return BuildError(
            f"{owner or 'an entry'} would replace the directory /{path}, or change its mode or owner",
            code="path-taken",
            do="Choose another path.",
        )
    first = before.owner if before is not None and before.owner else "an earlier entry of the same layer"
    return BuildError(
        f"{first} and {owner or 'another'} both write /{path}, with different content",
        code="file-conflict",
        do="Exclude one of the two, or choose versions that do not share the path.",
    )


def _not_a_directory(path: str, parent: str) -> BuildError:
    return BuildError(
        f"/{path} cannot be written: /{parent} is a file, not a directory",
        code="parent-not-directory",
        do="Use another path, or a base without that file.",
    )


def _wrong_size(path: str, owner: str, size: int, how: str) -> BuildError:
    source = f"{owner}: " if owner else ""
    return BuildError(
        f"{source}/{path} should have {size} bytes but its content {how}",
        code="size-mismatch",
        do="Fetch the input again; if it stays, do not use it.",
    )
