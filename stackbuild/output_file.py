"""A file that somebody named: it appears complete or not at all, and a sentence says why it cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OF_THE_SYSTEM = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")


def write_file(path: Path, data: bytes) -> None:
    """Write a file atomically; its folder is made when missing.

    Args:
        path: Where; a device or pipe such as /dev/stdout is written in place.
        data: All of its content.

    Raises:
        UsageError: ``output-unwritable``.
    """
    with writing(path):
        _write_file(path, data)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence why a place that the person named cannot be written.

    Args:
        path: The file or folder they named.

    Raises:
        UsageError: ``output-unwritable``. A full disk is told as such elsewhere, and a reader that has gone away
            is no mistake of the person.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE):
            error.filename = error.filename or str(path)  # writing alone does not say what was written
            raise
        from stackbuild.errors import UsageError

        raise UsageError(
            f"cannot be written: {error.strerror or error}",
            code="output-unwritable",
            where=str(path),
            do="Name another place, or one that you may write to.",
        ) from error


def require_apart(source: str, *outputs: Path | None) -> None:
    """Refuse, before long work, to write over what is read, or two results into one file.

    Args:
        source: What is read; a path where there is a file of that name.
        outputs: The files that the person named; None and ``-`` for stdout.

    Raises:
        UsageError: ``output-unwritable``.
    """
    taken = {os.path.realpath(source): "it is what is read"} if _is_file(source) else {}
    for output in outputs:
        if output is None or str(output) == "-" or _is_stream(output):
            continue
        where = os.path.realpath(output)
        why = taken.get(where)
        if why:
            from stackbuild.errors import UsageError

            raise UsageError(
                f"it is not written: {why}",
                code="output-unwritable",
                where=str(output),
                do="Name another place.",
            )
        taken[where] = "another result goes there"


def _is_file(source: str) -> bool:
    try:
        return Path(source).is_file()
    except ValueError:  # a name that no file can have
        return False


def require_folder(folder: Path) -> None:
    """Make sure, before long work, that files can be written into a folder; it is made when missing.

    Raises:
        UsageError: ``output-unwritable``.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".stackbuild.")
        os.close(descriptor)
        Path(temporary).unlink()


def replace_file(path: Path, data: bytes, *, mode: int | None = None, durable: bool = False) -> None:
    """Put a complete file in the place of what is there; a failure leaves that as it was.

    Args:
        path: Where; its folder is there.
        data: All of its content.
        mode: Its permissions; None for those that open() gives.
        durable: Wait until the content is on the disk.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    # Not by tempfile, whose files are private: only the system can apply the umask, since asking for it sets it,
    # for all threads.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_stream(path: Path) -> bool:
    """Whether a place is written as it is: /dev/stdout stays, also where a shell has put a file behind it."""
    return path.exists() and (not path.is_file() or str(path.absolute()).startswith(_OF_THE_SYSTEM))


def _write_file(path: Path, data: bytes) -> None:
    if _is_stream(path):
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
