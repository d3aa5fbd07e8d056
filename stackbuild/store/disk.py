"""Small things about files on a disk: their hash, and a full disk told as what it is."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stackbuild.errors import BuildError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def disk_full_as_error(where: Path) -> Iterator[None]:
    """Turn "no space left" and "quota exceeded" into a BuildError with code ``disk-full``.

    Args:
        where: What is told where the error names no file.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise BuildError(
            f"the disk is full: {error.strerror}",
            code="disk-full",
            where=str(error.filename or where),
            do="Free some space, or run `stackbuild store evict`; nothing half-written was kept.",
        ) from error


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
