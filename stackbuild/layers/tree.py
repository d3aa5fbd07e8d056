"""The file tree a layer lands on: what the base and the layers below it hold.

Docker unpacks each layer beside the ones below it, so an entry wins over whatever has its path
there: a ``lib/`` directory entry would replace the base's ``lib`` link, and a ``tmp/`` entry its mode.
Knowing the tree is what lets the tar writer avoid both.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Any, Literal, Protocol

from stackbuild.errors import BuildError

Kind = Literal["file", "dir", "symlink", "other"]

# Paths whose text the tree carries, so that the system layer can edit what is really there.
ACCOUNT_FILES = ("etc/passwd", "etc/group", "etc/shadow", "etc/gshadow")

XATTR_PREFIX = "SCHILY.xattr."
_MAX_LINKS = 40  # as Linux, path_resolution(7): more is ELOOP


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a tree.

    Attributes:
        kind: file, dir, symlink or other (device, fifo).
        mode: Permission bits, up to 0o7777.
        uid: Numeric owner.
        gid: Numeric group.
        linkname: A symlink's target as written.
        xattrs: (name, value) pairs; bytes that are not UTF-8 are surrogate-escaped, as ``tarfile`` does.
        owner: Who wrote it, for messages and conflict checks; empty for the base and for debs, whose
            files later layers may replace.
        sha256: Hex digest of a file's content, where it is known.
        text: The content of an account file (``ACCOUNT_FILES``), else empty.
    """

    kind: Kind
    mode: int
    uid: int = 0
    gid: int = 0
    linkname: str = ""
    xattrs: tuple[tuple[str, str], ...] = ()
    owner: str = ""
    sha256: str = ""
    text: str = ""


# What one layer adds: path without leading slash to entry; None where the layer deletes the path.
Additions = Mapping[str, Entry | None]


class Node(Protocol):
    """What resolving a path asks of an entry."""

    @property
    def kind(self) -> str:
        """``dir``, ``symlink`` or something else."""

    @property
    def linkname(self) -> str:
        """A symlink's target as written."""


Lookup = Callable[[str], Node | None]


def resolve_path(path: str, lookup: Lookup, *, follow_last: bool = False) -> str:
    """Resolve ``path`` the way a process rooted in the tree would see it.

    Args:
        path: Relative to the root, without leading slash; ``..`` stops at the root.
        lookup: Gives the entry of an already resolved path.
        follow_last: Also follow a symlink in the last component.

    Returns:
        The path of the same file with no symlink among its parents.

    Raises:
        BuildError: ``symlink-loop``; ``parent-not-directory`` when a parent is a file.
    """
    pending = [name for name in reversed(path.split("/")) if name not in ("", ".")]
    done: list[str] = []
    links = 0
    while pending:
        name = pending.pop()
        if name == "..":
            if done:
                done.pop()
            continue
        here = "/".join((*done, name))
        entry = lookup(here)
        if entry is not None and entry.kind == "symlink" and (pending or follow_last):
            links += 1
            if links > _MAX_LINKS:
                raise BuildError(
                    f"/{path} goes through a loop of symbolic links at /{here}",
                    code="symlink-loop",
                    do="Use another path, or a base whose links end somewhere.",
                )
            if entry.linkname.startswith("/"):
                done = []
            pending.extend(part for part in reversed(entry.linkname.split("/")) if part not in ("", "."))
            continue
        if entry is not None and pending and entry.kind != "dir":
            raise BuildError(
                f"/{path} cannot be written: /{here} is a file, not a directory",
                code="parent-not-directory",
                do="Use another path, or a base without that file.",
            )
        done.append(name)
    return "/".join(done)


def check_one_writer(path: str, before: Entry | None, after: Entry | None) -> None:
    """Refuse two writers of different bytes to one path; the same bytes are allowed.

    Entries without an owner (the base's, debs') may be replaced by anyone.

    Raises:
        BuildError: ``file-conflict``, naming both writers.
    """
    if before is None or after is None or not before.owner or not after.owner:
        return
    if before.kind == after.kind == "dir":
        return
    if (before.kind, before.sha256, before.linkname) == (after.kind, after.sha256, after.linkname):
        return
    raise BuildError(
        f"{before.owner} and {after.owner} both write /{path}, with different content",
        code="file-conflict",
        do="Exclude one of the two, or choose versions that do not share the path.",
    )


class FileTree:
    """An immutable view of a file system: path without leading slash to :class:`Entry`."""

    def __init__(self, entries: Mapping[str, Entry] | None = None) -> None:
        self._entries: dict[str, Entry] = dict(entries or {})

    @classmethod
    def from_tar(cls, stream: IO[bytes]) -> FileTree:
        """Read the tar of a whole file system, such as an exported container.

        Args:
            stream: The tar, plain or compressed; it is read once, front to back.

        Raises:
            BuildError: ``tree-unreadable`` when it is not a whole tar.
        """
        entries: dict[str, Entry] = {}
        try:
            with tarfile.open(fileobj=stream, mode="r|*") as archive:
                for member in archive:
                    path = PurePosixPath(member.name.lstrip("/")).as_posix()
                    if path == ".":
                        continue
                    if member.islnk():
                        target = entries.get(PurePosixPath(member.linkname.lstrip("/")).as_posix())
                        if target is not None:
                            entries[path] = target
                        continue
                    text = ""
                    if member.isreg() and path in ACCOUNT_FILES:
                        content = archive.extractfile(member)
                        text = content.read().decode("utf-8", "surrogateescape") if content else ""
                    entries[path] = _entry_of(member, text)
                # tarfile stops in silence at a cut; a whole tar ends with two blocks of zeros.
                end = archive.fileobj.read(tarfile.BLOCKSIZE) if archive.fileobj else b""
                if end != bytes(tarfile.BLOCKSIZE):
                    raise tarfile.ReadError("it ends before its end marker")
        except (tarfile.TarError, EOFError, zlib.error) as error:
            raise BuildError(
                "the base's file system could not be read: its tar is damaged",
                code="tree-unreadable",
                detail=str(error),
                do="Run again; if it stays, pull the base anew.",
            ) from error
        return cls(entries)

    def get(self, path: str) -> Entry | None:
        """The entry at exactly ``path`` (no links followed), or None."""
        return self._entries.get(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: object) -> bool:
        return path in self._entries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTree) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def resolve(self, path: str, *, follow_last: bool = False) -> str:
        """``path`` with its parents taken through the tree's links; see :func:`resolve_path`."""
        return resolve_path(path, self.get, follow_last=follow_last)

    def lineage(self, path: str) -> str:
        """A digest of all that decides how an entry at ``path`` is written: its resolved path, the
        attributes of the directories above it, and whether a link or directory is there.

        Makers put it in their keys, so that a layer is reused only over a base where it would come out
        the same.
        """
        resolved = self.resolve(path)
        rows = [
            (name, _row(replace(entry, owner=""))) for name in _above(resolved) if (entry := self.get(name))
        ]
        taken = entry.kind if (entry := self.get(resolved)) and entry.kind != "file" else ""
        return hashlib.sha256(json.dumps([resolved, rows, taken]).encode()).hexdigest()

    def with_layer(self, additions: Additions) -> FileTree:
        """The tree after a layer: deletions take what is below them, a file takes the directory it replaces.

        Raises:
            BuildError: ``file-conflict`` when the layer and one below it write different bytes to one path.
        """
        gone: set[str] = set()
        for path, entry in additions.items():
            before = self._entries.get(path)
            check_one_writer(path, before, entry)
            if before is not None and before.kind == "dir" and (entry is None or entry.kind != "dir"):
                gone.add(path)
        entries = self._entries
        if gone:
            entries = {path: entry for path, entry in entries.items() if gone.isdisjoint(_above(path))}
        merged = {**entries, **additions}
        return FileTree({path: entry for path, entry in merged.items() if entry is not None})

    def to_json(self) -> dict[str, Any]:
        """The tree as plain JSON values."""
        return additions_to_json(self._entries)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FileTree:
        """The tree that :meth:`to_json` wrote."""
        return cls({path: entry for path, entry in additions_from_json(value).items() if entry is not None})


def additions_to_json(additions: Additions) -> dict[str, Any]:
    """A layer's additions as plain JSON values, in path order."""
    return {
        path: None if entry is None else _row(entry)
        for path, entry in sorted(additions.items(), key=lambda item: item[0])
    }


def additions_from_json(value: Mapping[str, Any]) -> dict[str, Entry | None]:
    """The additions that :func:`additions_to_json` wrote."""
    return {path: None if row is None else _from_row(row) for path, row in value.items()}


def _row(entry: Entry) -> list[Any]:
    row: list[Any] = [entry.kind, entry.mode, entry.uid, entry.gid]
    rest: list[Any] = [
        entry.linkname,
        [list(pair) for pair in entry.xattrs],
        entry.owner,
        entry.sha256,
        entry.text,
    ]
    while rest and not rest[-1]:  # most entries end early: keeps the stored record small
        rest.pop()
    return row + rest


def _from_row(row: list[Any]) -> Entry:
    linkname, xattrs, owner, sha256, text = row[4:] + ["", (), "", "", ""][len(row) - 4 :]
    pairs = tuple((name, value) for name, value in xattrs)
    return Entry(row[0], row[1], row[2], row[3], linkname, pairs, owner, sha256, text)


def _above(path: str) -> Iterator[str]:
    """The directories above ``path``, without the root."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def _entry_of(member: tarfile.TarInfo, text: str) -> Entry:
    kind: Kind = "other"
    if member.isreg():
        kind = "file"
    elif member.isdir():
        kind = "dir"
    elif member.issym():
        kind = "symlink"
    xattrs = tuple(
        sorted(
            (key.removeprefix(XATTR_PREFIX), value)
            for key, value in member.pax_headers.items()
            if key.startswith(XATTR_PREFIX)
        )
    )
    linkname = member.linkname if kind == "symlink" else ""
    return Entry(kind, member.mode & 0o7777, member.uid, member.gid, linkname, xattrs, text=text)
