"""The acceptance worksheet: what accepting a GPU stack asks for, and the gates that collect it."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from itertools import groupby

from pydantic import Field

from stackbuild.frozen_model import FrozenModel

_DATA = "worksheet.toml"
_INTRODUCTION = """
## Acceptance worksheet

What accepting a stack on a GPU asks for, the evidence of it, and the gates that collect and judge it. The reports of
`stackbuild verify` hold the evidence; a cell that no gate covers says why.
"""


class Cell(FrozenModel):
    """One cell of the worksheet: gates, or the reason why none covers it."""

    area: str
    item: str = Field(min_length=1, description="what is asked for")
    evidence: str = Field(min_length=1, description="what shows it")
    gates: tuple[str, ...] = Field(default=(), description="codes of the gates that collect the evidence")
    not_covered: str = Field(default="", description="why no gate does")


def worksheet() -> tuple[Cell, ...]:
    """All cells, in the order of the areas."""
    text = files(__package__).joinpath(_DATA).read_text(encoding="utf-8")
    return tuple(Cell.model_validate(cell) for cell in tomllib.loads(text)["cell"])


def worksheet_document() -> str:
    """The worksheet as Markdown: a table for each area."""
    parts = [_INTRODUCTION]
    for area, cells in groupby(worksheet(), key=lambda cell: cell.area):
        rows = "".join(f"| {cell.item} | {cell.evidence} | {_collected(cell)} |\n" for cell in cells)
        parts.append(f"\n### {area}\n\n| Asked for | Evidence | Gate |\n|---|---|---|\n{rows}")
    return "".join(parts)


def _collected(cell: Cell) -> str:
    if cell.not_covered:
        return f"not covered: {cell.not_covered}"
    return ", ".join(f"[`{code}`](#{code})" for code in cell.gates)
