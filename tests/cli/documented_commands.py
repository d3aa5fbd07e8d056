"""Finds the ``stackbuild …`` command lines in documents, workflows and units."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_INLINE = re.compile(r"`stackbuild ([^`\n]+)`")
# A command line begins a line, follows what a shell lets a command follow, or is what a unit starts.
_SHELL = re.compile(
    r"(?:^|[;&|(]\s*|\b(?:then|do|else)\s+|^-\s+|\brun:\s+|ExecStart=)(?:\S*/)?stackbuild(?=\s|$)(.*)"
)
_FENCE = re.compile(r"^\s*```")


@dataclass(frozen=True)
class Documented:
    """One command line.

    Attributes:
        place: ``file:line``.
        words: What comes after ``stackbuild``.
    """

    place: str
    words: tuple[str, ...]


def documented_commands(path: Path) -> Iterator[Documented]:
    """Every command line in a Markdown file, a YAML file with scripts, or a systemd unit.

    In Markdown it is what stands in code blocks, fenced or indented, and in code spans that begin with
    ``stackbuild`` and a space.
    """
    lines = _joined(path.read_text(encoding="utf-8"))
    fenced = False
    for number, line in lines:
        if path.suffix == ".md":
            if _FENCE.match(line):
                fenced = not fenced
                continue
            for match in _INLINE.finditer(line):
                yield Documented(f"{path.name}:{number}", _words(match[1].replace("\\|", "|"), spans=True))
            if not fenced and not line.startswith("    "):
                continue
        found = _SHELL.search(line.strip().removeprefix("$ "))
        if found is not None and not line.lstrip().startswith("#"):
            words = _words(found[1], spans=False)
            if words:
                yield Documented(f"{path.name}:{number}", words)


def _joined(text: str) -> list[tuple[int, str]]:
    """Lines with the ones that continue them, each with the first one's number."""
    found: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        found.append((start, pending + line))
        pending = ""
    return found


def _words(text: str, *, spans: bool) -> tuple[str, ...]:
    """The words up to what ends a command in the shell; in a code span ``|`` separates what may stand there."""
    if not spans:
        text = re.split(r"\s+(?:#|>|>>|\||\|\||&&|;;?)(?:\s|$)|;\s", text + " ")[0]
    text = re.sub(r"\)\"?\s*(?:…)?\s*$", "", text)
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe of prose
        words = text.split()
    return tuple(word.strip("[]").rstrip(",") if spans else word for word in words)
