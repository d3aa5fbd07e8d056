"""Decoding and splitting the text files of packages, whatever they were written with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, TypeVar

from stackbuild.errors import ScanError

_LONGEST_LINE = 1 << 16
_MOST_DIGITS = 18
# All of Debian has 65,000 packages; the largest wheel has some 30,000 files.
MOST_PACKAGES = 200_000
MOST_FILES = 500_000
# Of all packages' files and dependencies in one database: a hundred for each of twenty thousand packages.
MOST_ROWS = 2_000_000


_Row = TypeVar("_Row")


def at_most(most: int, rows: Iterable[_Row], path: str) -> Iterator[_Row]:
    """The rows of a file as long as there are not more than ``most``.

    Raises:
        ScanError: ``layer-too-large``: there are; no real file has so many.
    """
    for number, row in enumerate(rows, 1):
        if number > most:
            raise too_many(most, path)
        yield row


def too_many(most: int, path: str) -> ScanError:
    """The error of a file with more rows than any that is meant to be used."""
    return ScanError(
        f"/{path} has more than {most:,} rows",
        code="layer-too-large",
        do="Look at what makes them; no image that is meant to be used has so many.",
    )


def decoded(data: bytes) -> str:
    """UTF-8 where it is, else Latin-1, in which older packages wrote people's names."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def plain(text: str) -> str:
    """Text out of JSON that can be written as UTF-8: half of a surrogate pair is shown as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def number(text: str) -> int:
    """A size as a package database states it; 0 for what is none or beyond any size."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0


def lines(stream: IO[bytes]) -> Iterator[str]:
    """The lines without their ends; of a line of more than 64 KiB only its first part."""
    while line := stream.readline(_LONGEST_LINE):
        yield decoded(line.rstrip(b"\r\n"))
        while not line.endswith(b"\n") and (line := stream.readline(_LONGEST_LINE)):
            pass


def fields(stream: IO[bytes], wanted: frozenset[str]) -> Iterator[dict[str, str]]:
    """The paragraphs of a file in Debian's control format (deb-src-control(5)), one at a time.

    Args:
        stream: The file; it may have any size.
        wanted: Fields to keep; only their first line.
    """
    found: dict[str, str] = {}
    for line in lines(stream):
        if not line.strip():
            if found:
                yield found
            found = {}
        elif line[0] not in " \t":
            name, colon, value = line.partition(":")
            if colon and name in wanted:
                found[name] = value.strip()
    if found:
        yield found
