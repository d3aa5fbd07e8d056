"""What a layer holds, path by path, and the names a tar may bring."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
_AFTER_SLASH = chr(ord("/") + 1)


class FileEntry(NamedTuple):
    """One path of a layer.

    Attributes:
        kind: ``file``, ``dir``, ``symlink``, ``hardlink`` or ``other`` (device, pipe).
        mode: Permission bits, up to 0o7777.
        uid: Numeric owner.
        gid: Numeric group.
        size: Bytes of a file; 0 for everything else.
        linkname: A symlink's target as written; a hard link's target as a path of the image.
    """

    kind: str
    mode: int
    uid: int = 0
    gid: int = 0
    size: int = 0
    linkname: str = ""


def plain_path(name: str) -> str | None:
    """A tar's name as a path without leading slash; empty for the root; None when it leaves the image.

    OCI image specification 1.1, "Layer Filesystem Changesets": names are relative to the root.
    """
    if "\0" in name:
        return None
    if not name.startswith(("/", "./")) and "//" not in name and "/." not in name and name[:1] != ".":
        return name.rstrip("/")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return None if ".." in parts else "/".join(parts)


def paths_below(folders: Iterable[str], paths: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The paths in folders and the folders in those, by the outermost folder that is asked for.

    Looking at each folder of each path would take long where they are deep: a path can have two thousand.

    Args:
        folders: Without slash at the end.
        paths: Where to look.
    """
    outermost: list[str] = []
    for folder in sorted(f"{folder}/" for folder in folders):
        if not outermost or not folder.startswith(outermost[-1]):
            outermost.append(folder)
    in_order = sorted(paths) if outermost else []
    for folder in outermost:
        begin = bisect_left(in_order, folder)
        end = bisect_left(in_order, f"{folder[:-1]}{_AFTER_SLASH}", begin)
        yield folder[:-1], in_order[begin:end]
