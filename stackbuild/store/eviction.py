"""What the store holds, how it is emptied, and whether it is still what it was."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stackbuild.errors import NotJudgedError
from stackbuild.store.disk import file_sha256

# Whoever holds a lock of the store shares this one; an eviction has it alone.
IN_USE = "in-use.lock"
_YOUNG = 60.0  # seconds


@dataclass(frozen=True)
class Usage:
    """Bytes and numbers of files per kind."""

    kind: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Evicted:
    """What an eviction removed and left, in bytes."""

    files: int
    bytes: int
    left: int


@dataclass(frozen=True)
class Damaged:
    """A file whose content is no longer what its name says."""

    path: Path
    expected: str
    measured: str
    status: os.stat_result

    def remove(self) -> None:
        """Remove it, unless another file has taken its place since it was measured."""
        with suppress(FileNotFoundError):
            if os.path.samestat(self.path.stat(), self.status):
                self.path.unlink()


def usage(root: Path) -> tuple[Usage, ...]:
    """Measure the store, one row per kind of content."""
    rows = []
    for kind in ("blobs", "layers", "records", "partial", "tmp"):
        sizes = [status.st_size for _, status in _files(root / kind)]
        rows.append(Usage(kind, len(sizes), sum(sizes)))
    return tuple(rows)


def evict(root: Path, *, max_bytes: int | None) -> Evicted:
    """Remove what was used longest ago until at most ``max_bytes`` are left; None empties the store.

    Left-overs of processes that are gone are removed first. Records are kept unless the store is emptied:
    they are small, and only ever save work.

    Raises:
        NotJudgedError: Another process is using the store (code ``store-in-use``).
    """
    with (root / IN_USE).open("a", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            held = [path.stem for path, _ in _files(root / "locks") if _is_held(path)]
            raise NotJudgedError(
                f"the store is in use: {held[0]} is locked" if held else "the store is in use",
                code="store-in-use",
                do="Wait for that run to end.",
            ) from error
        return _evict(root, max_bytes)


def _evict(root: Path, max_bytes: int | None) -> Evicted:
    files = removed = 0
    for path, status in _files(root / "tmp"):
        owner = path.name.partition("-")[0]
        if not owner.isdigit() or not Path("/proc", owner).exists() or int(owner) == os.getpid():
            path.unlink(missing_ok=True)
            files, removed = files + 1, removed + status.st_size
    if max_bytes is None:
        for path, status in _files(root / "records"):
            path.unlink(missing_ok=True)
            files, removed = files + 1, removed + status.st_size
    entries = [*_files(root / "blobs"), *_files(root / "layers", suffix=".tar"), *_files(root / "partial")]
    left = sum(status.st_size for _, status in entries)
    for path, status in sorted(entries, key=lambda found: (found[1].st_atime_ns, str(found[0]))):
        if max_bytes is not None and left <= max_bytes:
            break
        if path.parent.name == "partial":
            if not _removed_idle(path):
                continue
        else:
            if path.suffix == ".tar":
                path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        files, removed, left = files + 1, removed + status.st_size, left - status.st_size
    return Evicted(files, removed, left)


def _removed_idle(path: Path) -> bool:
    """Remove a growing file unless somebody downloads into it; True when it was removed.

    It is held until it is gone, so that who comes for it meanwhile sees that, and begins another one.
    """
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(path.stat(), os.fstat(stream.fileno())):
                return False
            path.unlink()
    except (BlockingIOError, FileNotFoundError):  # held, or it has just become a complete file
        return False
    return True


def _is_held(path: Path) -> bool:
    """Whether somebody holds a lock."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def sweep(root: Path) -> list[str]:
    """Remove incomplete files that nobody writes any more; returns their names.

    Who writes a file holds a lock on it, so this is safe beside processes of other containers and machines.
    """
    removed = []
    for path, _ in _files(root / "tmp"):
        with suppress(FileNotFoundError), path.open("rb") as stream:
            # Its writer locks a file just after it is made: a very young one is left alone.
            if time.time() - os.fstat(stream.fileno()).st_mtime < _YOUNG:
                continue
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            path.unlink()
            removed.append(path.name)
    return removed


def damaged(root: Path) -> Iterator[Damaged]:
    """Hash every file and layer again, and yield those that are not what they are called.

    What another process removes meanwhile is passed by.
    """
    for path, _ in _files(root / "blobs"):
        with suppress(FileNotFoundError):
            status, measured = path.stat(), file_sha256(path)
            if measured != path.name:
                yield Damaged(path, path.name, measured, status)
    for path, _ in _files(root / "layers", suffix=".tar"):
        # A layer without its description is never handed out.
        with suppress(FileNotFoundError):
            description = path.with_suffix(".json").read_bytes()
            expected = str(json.loads(description)["diff-id"]).removeprefix("sha256:")
            status, measured = path.stat(), file_sha256(path)
            if measured != expected:
                yield Damaged(path, expected, measured, status)


def _files(folder: Path, suffix: str = "") -> list[tuple[Path, os.stat_result]]:
    """The files below a folder and what they are now; others may add and remove some meanwhile."""
    found = []
    for path in sorted(folder.rglob(f"*{suffix}")):
        with suppress(FileNotFoundError):
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                found.append((path, status))
    return found
