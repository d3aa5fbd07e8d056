"""Temporary folders that a later run removes when theirs was killed.

They lie where temporary files go (TMPDIR), not in the store: mmdebstrap works in them as other users, who may
not be able to enter the store.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "stackbuild-scratch-"
_YOUNG = 60.0  # seconds; a folder is locked just after it is made


@dataclass(frozen=True)
class Scratch:
    """A temporary folder.

    Attributes:
        path: The folder.
        descriptor: An open file that keeps it locked. A program that may outlive this process inherits it
            (``pass_fds``), so that nobody removes the folder under it.
    """

    path: Path
    descriptor: int


@contextmanager
def scratch_folder() -> Iterator[Scratch]:
    """Make a temporary folder and remove it when the block ends; a killed run's is for ``sweep_scratch``."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Scratch(Path(name), descriptor)
        finally:
            os.close(descriptor)


def sweep_scratch() -> list[str]:
    """Remove this user's folders that nobody works in any more, and return their names.

    A folder that something is mounted in is left alone.
    """
    removed = []
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, no folder, or another user's
            continue
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _YOUNG:
                continue
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not _holds_a_mount(folder):
                    # Without root some of it belongs to the users that mmdebstrap worked as; that stays.
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder.name)
        finally:
            os.close(descriptor)
    return removed


def _holds_a_mount(folder: Path) -> bool:
    """proc(5), /proc/PID/mountinfo: the fifth field is the mount point, with spaces and such in octal."""
    inside = f"{folder.resolve()}/"
    with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="surrogateescape") as mounts:
        return any(line.split(" ")[4].startswith(inside) for line in mounts)
