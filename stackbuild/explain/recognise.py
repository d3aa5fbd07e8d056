"""Recognises known failures in a pasted error or log, from the failure catalog (facts: failure_signatures).

A pure function over lines. Time is linear in the text: lines are cut at a fixed length, and every
repetition in a pattern is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO

from stackbuild.facts.rows import FailureSignature
from stackbuild.facts.tables import Facts

# A longer line is looked at in pieces that overlap by more than any pattern spans.
LONGEST_LINE = 4_000
OVERLAP = 1_000
_MOST_TEXTS = 5  # different texts of one failure that are told
_CONTEXT = 160  # characters shown on either side of a match in a long line
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One text that was recognised.

    Attributes:
        line: The line of the log, from 1.
        text: What matched, with a little of what stands around it.
        values: What the pattern captured, for example ``condition``: ``cuda>=12.8``.
        times: How many lines say the same.
    """

    line: int
    text: str
    values: dict[str, str]
    times: int = 1


@dataclass(frozen=True, slots=True)
class Recognised:
    """A known failure and where the text shows it."""

    signature: FailureSignature
    sightings: tuple[Sighting, ...]

    @property
    def code(self) -> str:
        """The failure's stable code."""
        return self.signature.code


@cache
def _compiled(facts: Facts) -> tuple[tuple[FailureSignature, re.Pattern[str]], ...]:
    return tuple((row, re.compile(row.pattern)) for row in facts.table("failure_signatures").rows)


def recognise(lines: Iterable[str], facts: Facts) -> tuple[Recognised, ...]:
    """The known failures in a text, causes before their symptoms.

    Args:
        lines: The text's lines; escape sequences of terminals are ignored.
        facts: The fact tables.

    Returns:
        One entry for each failure. Several with one text are all there; ``signature.apart`` tells them apart.
    """
    catalog = _compiled(facts)
    found: dict[int, dict[tuple[tuple[str, str], ...], Sighting]] = {}
    for number, line in enumerate(lines, start=1):
        for piece in _pieces(line):
            for index, match in _matches(piece, catalog):
                values = {name: value for name, value in match.groupdict().items() if value}
                sightings = found.setdefault(index, {})
                key = tuple(values.items())
                before = sightings.get(key)
                if before is not None:
                    times = before.times + (before.line != number)
                    sightings[key] = Sighting(before.line, before.text, values, times)
                elif len(sightings) < _MOST_TEXTS:
                    sightings[key] = Sighting(number, _around(piece, match), values)
    answers: dict[str, Recognised] = {}
    for index in sorted(found):
        row = catalog[index][0]
        # Two rows of one code give one answer, the first.
        answers.setdefault(row.code, Recognised(row, tuple(found[index].values())))
    return tuple(answers.values())


def bounded_lines(stream: BinaryIO, *, longest: int = 1 << 20) -> Iterator[str]:
    """The lines of a stream as text, whatever bytes they hold, without keeping an endless line in memory.

    Args:
        stream: Bytes; what is not UTF-8 is replaced.
        longest: Bytes of one line that are looked at; the rest of such a line comes as further lines.
    """
    while line := stream.readline(longest):
        yield line.decode("utf-8", errors="replace")


def _pieces(line: str) -> Iterator[str]:
    line = line.rstrip("\r\n")
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if len(line) <= LONGEST_LINE:
        yield line
        return
    for start in range(0, len(line), LONGEST_LINE - OVERLAP):
        yield line[start : start + LONGEST_LINE]


def _matches(
    piece: str, catalog: tuple[tuple[FailureSignature, re.Pattern[str]], ...]
) -> Iterator[tuple[int, re.Match[str]]]:
    """The matches in one piece; one that overlaps an earlier row's is that row's, unless ``apart`` says more."""
    taken: list[tuple[int, int]] = []
    for index, (row, pattern) in enumerate(catalog):
        # Looking for a word is a hundred times faster than a pattern, and most lines are not errors.
        if not any(word in piece for word in row.contains):
            continue
        match = pattern.search(piece)
        if match is None:
            continue
        if not row.apart and any(match.start() < end and start < match.end() for start, end in taken):
            continue
        taken.append(match.span())
        yield index, match


def _around(piece: str, match: re.Match[str]) -> str:
    start, end = max(0, match.start() - _CONTEXT), min(len(piece), match.end() + _CONTEXT)
    return f"{'…' if start else ''}{piece[start:end].strip()}{'…' if end < len(piece) else ''}"
