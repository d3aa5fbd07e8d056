"""Where words go: the result to stdout or a file, talk to stderr."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import click


def plain(stream: TextIO | None = None) -> bool:
    """True when text must be plain: NO_COLOR, CI, a pipe or a dumb terminal.

    Args:
        stream: The stream in question; stderr when None.
    """
    stream = sys.stderr if stream is None else stream
    environ = os.environ
    return bool(
        environ.get("NO_COLOR") or environ.get("CI") or environ.get("TERM") == "dumb" or not stream.isatty()
    )


def talk(message: str) -> None:
    """Say something that is not the result: to stderr. When nobody can hear it, the work goes on all the same."""
    with suppress(OSError):
        click.echo(message, err=True)


def json_text(value: object) -> str:
    """JSON for people and machines: two spaces, UTF-8, a newline at the end; keys keep their order."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_result(result: str | bytes, output: Path | None = None) -> None:
    """Write a command's result to stdout, or to a file, which then holds all of it or what it held before.

    A reader of stdout that has gone away does not change how the command ends.

    Args:
        result: Text (encoded as UTF-8) or bytes.
        output: The file; None or ``-`` for stdout.
    """
    data = result.encode() if isinstance(result, str) else result
    if output is not None and str(output) != "-":
        write_file(output, data)
        return
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
            raise
        from stackbuild.errors import UsageError

        raise UsageError(
            f"cannot be written: {error.strerror or error}",
            code="output-unwritable",
            where=str(path),
            do="Name another place, or one that you may write to.",
        ) from error


def _write_file(path: Path, data: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)  # as open() would have made it
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write several files into a folder, each atomically.

    Args:
        folder: Made when missing.
        files: Name → content.
    """
    for name, data in files.items():
        write_file(folder / name, data)
