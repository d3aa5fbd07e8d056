"""Which stacks a change concerns: pure functions over paths.

Any byte counts, a comment too: what decides an image is spread over spec, lock, files and models, and a job too
many costs minutes, one too few an image that nobody judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from stackbuild.schedule.git_changes import Changes

OUTSIDE = "outside the repository"


def changed_files(reads: Iterable[Path], changes: Changes) -> tuple[str, ...]:
    """The changed paths among what a stack reads, in order.

    Args:
        reads: Files and folders, whether they exist or not. For a link, both it and what it leads to count.
        changes: What changed.

    Returns:
        Paths relative to the repository's root. What lies outside it cannot be compared, so it counts as changed,
        as ``PATH (outside the repository)``.
    """
    found: set[str] = set()
    for read in reads:
        names = _names(read, changes.root)
        if not names:
            found.add(f"{read} ({OUTSIDE})")
        found.update(path for path in changes.paths for name in names if _touches(path, name))
    return tuple(sorted(found))


def removed_stacks(changes: Changes, stacks_folder: Path, suffixes: Sequence[str]) -> tuple[str, ...]:
    """The names of stacks whose spec was in ``stacks_folder`` and is gone, in order.

    Args:
        changes: What changed.
        stacks_folder: Where specs are.
        suffixes: Of the file names of specs.
    """
    folders = _names(stacks_folder, changes.root)
    gone = [PurePosixPath(path) for path in changes.deleted]
    return tuple(
        sorted(
            {
                path.stem
                for path in gone
                if path.suffix in suffixes
                and path.parent.as_posix() in folders
                and not any((stacks_folder / f"{path.stem}{suffix}").is_file() for suffix in suffixes)
            }
        )
    )


def _names(path: Path, root: Path) -> set[str]:
    """What the repository calls a path: as it is written, with its folder's links followed, and with its own."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
    ways = (absolute, absolute.parent.resolve() / absolute.name, absolute.resolve())
    return {way.relative_to(root).as_posix() for way in ways if way.is_relative_to(root)}


def _touches(changed: str, read: str) -> bool:
    """Equal, within a folder that is read, or a submodule or link that holds what is read."""
    return changed == read or read == "." or changed.startswith(f"{read}/") or read.startswith(f"{changed}/")
