"""Geometry of the page's plots: bars whose widths are in percent, so that text keeps its size on a phone."""

from __future__ import annotations

from dataclasses import dataclass

from stackbuild.reports.document import Plot
from stackbuild.sizes import size_text

_LONGEST_LABEL = 36
ROW_HEIGHT = 38  # pixels: a line of text above a bar


@dataclass(frozen=True)
class DrawnBar:
    """One bar: ``top`` in pixels, ``width`` in percent of the plot's."""

    label: str
    value: str
    top: int
    width: str


@dataclass(frozen=True)
class DrawnPlot:
    """A plot that is ready to be drawn; ``height`` in pixels."""

    title: str
    height: int
    bars: tuple[DrawnBar, ...]


def drawn(plot: Plot) -> DrawnPlot:
    """Lay out one plot; the longest bar has the whole width."""
    largest = max((bar.value for bar in plot.bars), default=0.0) or 1.0
    bars = tuple(
        DrawnBar(
            label=_fitting(bar.label),
            value=amount(bar.value, plot.unit) + (f" ({_fitting(bar.note)})" if bar.note else ""),
            top=position * ROW_HEIGHT,
            width=f"{max(0.0, min(100.0, 100 * bar.value / largest)):.2f}",
        )
        for position, bar in enumerate(plot.bars)
    )
    return DrawnPlot(plot.title, len(bars) * ROW_HEIGHT, bars)


def _fitting(label: str) -> str:
    """SVG breaks no line, so that a long label would run over its value."""
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"


def amount(value: float, unit: str) -> str:
    """A value for people: seconds as ``0.03 s``, bytes as ``1.5 GB``."""
    if unit == "s":
        return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"
    return size_text(value)
