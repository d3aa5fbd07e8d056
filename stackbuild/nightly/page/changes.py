"""What a drift or a new lock changed: one line for the table of stacks, and the rows of its explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from stackbuild.drift.model import Drift, FileChange, PackageChange, PinChange
from stackbuild.nightly.history.model import TrendPoint

_Moved = TypeVar("_Moved", PinChange, PackageChange)

_NAMED = 3  # of each level, in the one line
_LONGEST_NAME = 60
# Of each level, in the explanation of the newest change and of an older one; the night's report has all.
_ROWS, _ROWS_BEFORE = 30, 8


@dataclass(frozen=True)
class Change:
    """A change that one night found, or several nights in a row in the same words.

    Attributes:
        kind: ``drift``, or ``new lock`` where it was wanted.
        first: The night that found it first.
        last: The newest night in a row that found the same.
        nights: How many nights that are.
        drift: What differs.
        rows: How many rows of each level are shown.
    """

    kind: str
    first: TrendPoint
    last: TrendPoint
    nights: int
    drift: Drift
    rows: int

    @property
    def line(self) -> str:
        """The change in one line."""
        return change_line(self.drift)

    @property
    def pins(self) -> Sequence[PinChange]:
        """The first pins that moved."""
        return self.drift.pins[: self.rows]

    @property
    def packages(self) -> Sequence[PackageChange]:
        """The first packages that came, went or changed."""
        return self.drift.packages[: self.rows]

    @property
    def files(self) -> Sequence[FileChange]:
        """The first files that count."""
        return self._counting[: self.rows]

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not shown, as sentences."""
        noise = len(self.drift.files) - len(self._counting)
        counted = (
            (len(self.drift.pins) - self.rows, "more pins"),
            (len(self.drift.packages) - self.rows, "more packages"),
            (len(self._counting) - self.rows, "more files"),
            (noise, "file of known noise" if noise == 1 else "files of known noise"),
        )
        return tuple(f"{count} {what}." for count, what in counted if count > 0)

    @property
    def _counting(self) -> tuple[FileChange, ...]:
        return tuple(file for file in self.drift.files if not file.noise)


def change_line(drift: Drift) -> str:
    """The change in one line: what is breaking first, pins before packages before files."""
    pins = [_moved(pin.pin, pin.before, pin.after) for pin in _breaking_first(drift.pins)]
    # Of a package that is a pin as well, the pin says it.
    told = {pin.pin for pin in drift.pins}
    packages = [
        _moved(package.name, package.before, package.after)
        for package in _breaking_first(drift.packages)
        if package.name not in told
    ]
    parts = [_listed(pins), _listed(packages, "packages")]
    files = [file for file in drift.files if not file.noise]
    if files and not any(parts):
        parts.append(f"{files[0].path}" if len(files) == 1 else f"{len(files)} files, first {files[0].path}")
    if drift.first_layer is not None:
        parts.append(f"from layer {drift.first_layer.number}, {drift.first_layer.maker}")
    line = "; ".join(part for part in parts if part)
    if not line:
        line = (
            "only what is not content: " + ", ".join(drift.metadata[:_NAMED])
            if drift.metadata
            else "nothing named"
        )
    return f"breaking: {line}" if drift.breaking else line  # fmt: skip


def in_runs(found: Sequence[tuple[TrendPoint, str, Drift]]) -> tuple[Change, ...]:
    """Changes, newest first, with equal ones of neighbouring nights as one.

    Args:
        found: Night, kind and change, newest first.
    """
    changes: list[Change] = []
    for point, kind, drift in found:
        newest = changes[-1] if changes else None
        if newest is not None and newest.kind == kind == "drift" and _same(newest.drift, drift):
            changes[-1] = replace(newest, first=point, nights=newest.nights + 1)
        else:
            changes.append(Change(kind, point, point, 1, drift, _ROWS_BEFORE if changes else _ROWS))
    return tuple(changes)


def _same(one: Drift, other: Drift) -> bool:
    """Whether two nights say the same; what they call the two sides does not count."""
    return (one.pins, one.packages, one.files) == (other.pins, other.packages, other.files)


def _breaking_first(changes: Sequence[_Moved]) -> list[_Moved]:
    return sorted(changes, key=lambda change: not change.breaking)


def _moved(name: str, before: str, after: str) -> str:
    name, before, after = (_fitting(text) for text in (name, before, after))
    if not before:
        return f"+{name} {after}".rstrip()
    return f"{name} {before} → {after}" if after else f"−{name} {before}"


def _listed(items: Sequence[str], kind: str = "pins") -> str:
    named = ", ".join(items[:_NAMED])
    return f"{named} and {len(items) - _NAMED} more {kind}" if len(items) > _NAMED else named


def _fitting(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
