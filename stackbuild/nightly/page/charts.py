"""Geometry of the page's pictures, as SVG paths in whole units; how they look is in the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from stackbuild.findings import Verdict

CELL_HEIGHT = 10
# The higher and fuller the graver, so that a strip can be read without its colours: (top, height) of each part.
_SHAPES: dict[str, tuple[tuple[int, int], ...]] = {
    "skip": ((9, 1),),
    "pass": ((6, 4),),
    "warn": ((3, 7),),
    "error": ((0, 4), (6, 4)),
    "fail": ((0, 10),),
}
_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_EDGE = 96, 24, 2
_MOST_SPARK_POINTS = 48
CHART_WIDTH, CHART_HEIGHT = 1000, 100
_SMOOTHED_FROM = 60  # nights
_REACH = 7  # nights before and after


@dataclass(frozen=True)
class Strip:
    """Cells in a row: for each shape one path; ``width`` in units, ``CELL_HEIGHT`` high."""

    width: int
    paths: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Sparkline:
    """A small line with a dot at its end."""

    path: str
    dot: tuple[int, int]
    width: int = _SPARK_WIDTH
    height: int = _SPARK_HEIGHT


@dataclass(frozen=True)
class Chart:
    """A line over the nights.

    Attributes:
        path: The line; of many nights the running median, which shows a trend that noise hides.
        each: Then the values themselves, else empty.
        low: What the lower edge stands for.
        high: What the upper edge stands for.
        marks: Positions, from 0 to ``CHART_WIDTH``, of nights to point out.
    """

    path: str
    each: str
    low: float
    high: float
    marks: tuple[int, ...]


def verdict_shape(verdict: Verdict | None) -> str | None:
    """The shape of a verdict; None stays none."""
    return None if verdict is None else verdict.value.lower()


def strip(shapes: Sequence[str | None], *, cell: int = 1, gap: int = 0) -> Strip:
    """Draw one cell per night, oldest first; without a gap equal neighbours are one.

    Args:
        shapes: A shape's name, or None for a night without it.
        cell: Width of a cell, the gap included.
        gap: Space after each cell.
    """
    paths: dict[str, list[str]] = {}
    at = 0
    for shape, run in groupby(shapes):
        length = len(list(run))
        if shape is not None:
            widths = [length * cell] if not gap else [cell - gap] * length
            for number, width in enumerate(widths):
                for top, height in _SHAPES[shape]:
                    paths.setdefault(shape, []).append(
                        f"M{at + number * cell} {top}h{width}v{height}h-{width}z"
                    )
        at += length * cell
    return Strip(max(at, 1), tuple((shape, "".join(parts)) for shape, parts in sorted(paths.items())))


def sparkline(values: Sequence[float]) -> Sparkline | None:
    """A line of values, oldest first, where 0 is a night without one; None for less than two values."""
    known = [(number, value) for number, value in enumerate(_thinned(values)) if value]
    if len(known) < 2:
        return None
    low, high = min(value for _, value in known), max(value for _, value in known)
    across = (_SPARK_WIDTH - 2 * _SPARK_EDGE) / max(known[-1][0], 1)
    points = [
        (number, round(_SPARK_EDGE + number * across), _height(value, low, high)) for number, value in known
    ]
    return Sparkline(_line(points), points[-1][1:])


def chart(values: Sequence[float], marked: Sequence[bool]) -> Chart | None:
    """A line of values, oldest first, where 0 is a night without one; None for less than two values.

    Args:
        values: One per night.
        marked: Of each night, whether it is pointed out.
    """
    known = [(number, value) for number, value in enumerate(values) if value]
    if len(known) < 2:
        return None
    low, high = min(value for _, value in known), max(value for _, value in known)
    # A line that hardly moves must not look like a mountain range: the scale spans at least a tenth of the value.
    middle, span = (low + high) / 2, max(high - low, high * 0.1) * 1.1
    bottom, top = max(0.0, middle - span / 2), middle + span / 2
    across = CHART_WIDTH / max(len(values) - 1, 1)

    def drawn(values: Sequence[tuple[int, float]]) -> str:
        return _line(
            [
                (
                    number,
                    round(number * across),
                    round(CHART_HEIGHT * (1 - (value - bottom) / (top - bottom))),
                )
                for number, value in values
            ]
        )

    marks = tuple(round(number * across) for number, mark in enumerate(marked) if mark)
    if len(known) < _SMOOTHED_FROM:
        return Chart(drawn(known), "", bottom, top, marks)
    return Chart(drawn(_smoothed(known)), drawn(known), bottom, top, marks)


def _smoothed(values: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """The running median; a step stays a step."""
    around = [
        sorted(value for _, value in values[max(0, at - _REACH) : at + _REACH + 1])
        for at in range(len(values))
    ]
    return [(number, window[len(window) // 2]) for (number, _), window in zip(values, around, strict=True)]


def _thinned(values: Sequence[float]) -> list[float]:
    """At most so many values that each still has a place: the last of each stretch, if it has any."""
    if len(values) <= _MOST_SPARK_POINTS:
        return list(values)
    edges = [round(number * len(values) / _MOST_SPARK_POINTS) for number in range(_MOST_SPARK_POINTS + 1)]
    return [
        next((value for value in reversed(values[start:end]) if value), 0.0) for start, end in pairwise(edges)
    ]


def _height(value: float, low: float, high: float) -> int:
    # As in a chart, small moves look small.
    span = max(high - low, high * 0.05)
    usable = _SPARK_HEIGHT - 2 * _SPARK_EDGE
    return round(_SPARK_EDGE + usable * (0.5 - (value - (low + high) / 2) / span))


def _line(points: Sequence[tuple[int, int, int]]) -> str:
    """A path through points (night, x, y); it is broken where nights have no value."""
    parts: list[str] = []
    before: tuple[int, int, int] | None = None
    for number, x, y in points:
        if before is None or number != before[0] + 1:
            parts.append(f"M{x} {y}h0")  # with round ends this alone is a dot
        else:
            parts.append(f"h{x - before[1]}" if y == before[2] else f"l{x - before[1]} {y - before[2]}")
        before = (number, x, y)
    return "".join(parts)
