"""Where words go: the result to stdout or a file, talk to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from stackbuild.output_file import write_file
from stackbuild.reports.safe_text import safe_text


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
        click.echo(safe_text(message), err=True)


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


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write several files into a folder, each atomically.

    Args:
        folder: Made when missing.
        files: Name → content.
    """
    for name, data in files.items():
        write_file(folder / name, data)
