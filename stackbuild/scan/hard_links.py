"""Files of several names in one layer: one name holds the file, and each says what a reader takes out of it there.

A layer's tar has the content under the name that it happens to list first; uv and conda link packages out of their
caches into environments, and the caches come first as often as not.
"""

from __future__ import annotations

from typing import Any

from stackbuild.scan.entries import FileEntry
from stackbuild.scan.examine import ELF, SECRET, SHA256, is_hashed, readers_of

# Folders of caches of package managers: uv's files of wheels, conda's packages, and what lies below XDG_CACHE_HOME.
_CACHES = ("/archive-v0/", "/pkgs/", "/.cache/")
_OF_THE_FILE = (ELF, SECRET)


def settle_hard_links(entries: dict[str, FileEntry], facts: dict[str, dict[str, Any]]) -> None:
    """Of the names of one file the first in path order holds it, whichever the tar wrote first; a cache's comes last.

    What was taken out of the file holds for every name that its reader wants: a distribution is installed wherever
    its metadata has a name. Names in a cache say nothing where the file has others. A library stays one.

    Args:
        entries: The layer's paths, hard links as the tar has them; changed in place.
        facts: Reader's name → path → value; changed in place.
    """
    groups: dict[str, list[str]] = {}
    ends: dict[str, str] = {}
    for path, entry in entries.items():
        if entry.kind == "hardlink":
            groups.setdefault(_end_of_links(path, entries, ends), []).append(path)
    for target, paths in groups.items():
        held = entries.get(target)
        if held is None or held.kind != "file":
            continue
        names = sorted((target, *paths), key=lambda path: (_is_in_cache(path), path))
        first = names[0]
        for path in names:
            entries[path] = held._replace(kind="hardlink", size=0, linkname=first)
        entries[first] = held
        if not _is_in_cache(first):
            names = [path for path in names if not _is_in_cache(path)]
        for reader, found in facts.items():
            if target in found:
                value = found.pop(target)
                found.update(dict.fromkeys(_told(reader, names, held.size), value))


def _told(reader: str, names: list[str], size: int) -> list[str]:
    """The names, of which the first holds the file, that a reader's value is told of."""
    if reader in _OF_THE_FILE:
        return names[:1]
    if reader == SHA256:
        return [names[0], *(path for path in names[1:] if is_hashed(path, size))]
    wanted = [path for path in names if any(one.name == reader for one in readers_of(path))]
    return wanted or names[:1]


def _is_in_cache(path: str) -> bool:
    return any(folder in f"/{path}" for folder in _CACHES)


def _end_of_links(path: str, entries: dict[str, FileEntry], ends: dict[str, str]) -> str:
    """What a chain of hard links leads to; ``ends`` keeps that of every link passed, so that none is passed twice."""
    passed: dict[str, None] = {}
    while (entry := entries.get(path)) is not None and entry.kind == "hardlink" and path not in passed:
        if path in ends:
            path = ends[path]
            break
        passed[path] = None
        path = entry.linkname
    ends.update(dict.fromkeys(passed, path))
    return path
