"""What a drift or new inputs changed: one line for the table of stacks, and the rows of its explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from stackbuild.counting import some_of
from stackbuild.drift.findings import own_files, package_text, pin_text
from stackbuild.drift.model import Drift, PackageChange, PinChange
from stackbuild.nightly.history.model import TrendPoint
from stackbuild.reports.drift_summary import OwnedFiles, owned_files

_Moved = TypeVar("_Moved", PinChange, PackageChange)

_NAMED = 3  # of each level, in the one line
_LONGEST = 120  # characters of a pin or package
_EXAMPLES = 2  # of each package's files
# Of each level, in the explanation of the newest change and of an older one; the night's report has all.
_ROWS, _ROWS_BEFORE = 30, 8


@dataclass(frozen=True)
class Change:
    """A change that one night found, or several nights in a row in the same words.

    Attributes:
        kind: ``drift``, or ``change`` where it was wanted.
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
    def files(self) -> Sequence[OwnedFiles]:
        """The files that count, by the package they are of; the packages with the most."""
        return self._owned[: self.rows]

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not shown, as sentences."""
        noise = sum(bool(file.noise) for file in self.drift.files)
        counted = (
            (len(self.drift.pins) - self.rows, "more pins"),
            (len(self.drift.packages) - self.rows, "more packages"),
            (len(self._owned) - self.rows, "more packages with files that differ"),
            (noise, "file of known noise" if noise == 1 else "files of known noise"),
        )
        return tuple(f"{count:,} {what}." for count, what in counted if count > 0)

    @cached_property
    def _owned(self) -> tuple[OwnedFiles, ...]:
        return owned_files(self.drift.files, examples=_EXAMPLES)


def change_line(drift: Drift) -> str:
    """The change in one line: what is breaking first, pins before packages before files."""
    pins = [_fitting(pin_text(pin)) for pin in _breaking_first(drift.pins)]
    # Of a package that is a pin as well, the pin says it.
    told = {pin.pin for pin in drift.pins}
    packages = [
        _fitting(package_text(package))
        for package in _breaking_first(drift.packages)
        if package.name not in told
    ]
    parts = [some_of(pins, _NAMED, "pins"), some_of(packages, _NAMED, "packages")]
    parts.append(some_of((_fitting(text) for text in own_files(drift)), _NAMED, "files of no package"))
    files = [file for file in drift.files if not file.noise]
    if files and not any(parts):
        parts.append(files[0].path if len(files) == 1 else f"{len(files):,} files, first {files[0].path}")
    if drift.first_layer is not None:
        made_by = f", {drift.first_layer.maker}" if drift.first_layer.maker else ""
        parts.append(f"from layer {drift.first_layer.number}{made_by}")
    if drift.undetailed:
        parts.append("details unknown")
    line = "; ".join(part for part in parts if part)
    if not line:
        line = (
            f"only what is not content: {', '.join(drift.metadata[:_NAMED])}"
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


def _fitting(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
