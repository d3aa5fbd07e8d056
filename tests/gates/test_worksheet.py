"""The acceptance worksheet: every cell has a gate, or says why it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.gates.pages import gate_pages
from stackbuild.gates.worksheet import Cell, worksheet, worksheet_document

DOCUMENT = Path(__file__).parents[2] / "docs" / "gates.md"
# What accepting a stack on a GPU has to ask about, whatever the cells of each say.
AREAS = (
    "Install and build",
    "Runtime device",
    "Memory and data",
    "Reproducibility",
    "Profiling",
    "Deployment parity",
)


def problems(cell: Cell) -> list[str]:
    """What is wrong with a cell."""
    found = []
    if not cell.gates and not cell.not_covered:
        found.append("neither a gate nor a reason")
    if cell.gates and cell.not_covered:
        found.append("a gate and a reason why there is none")
    if cell.area not in AREAS:
        found.append(f"unknown area {cell.area}")
    found += [f"there is no gate {code}" for code in cell.gates if code not in gate_pages()]
    return found


@pytest.mark.parametrize("cell", worksheet(), ids=lambda cell: f"{cell.area}: {cell.item}")
def test_every_cell_has_a_gate_or_says_why_it_is_not_covered(cell: Cell) -> None:
    assert problems(cell) == []


@pytest.mark.parametrize(
    ("gates", "reason", "wrong"),
    [
        ((), "", "neither a gate nor a reason"),
        (("no-such-code",), "", "there is no gate no-such-code"),
        (("memory-fits",), "why", "a gate and a reason why there is none"),
    ],
)
def test_a_cell_that_is_wrong_is_found(gates: tuple[str, ...], reason: str, wrong: str) -> None:
    cell = Cell(area=AREAS[0], item="x", evidence="y", gates=gates, not_covered=reason)
    assert problems(cell) == [wrong]


def test_every_area_is_there_with_what_is_judged_and_what_is_not() -> None:
    assert tuple(dict.fromkeys(cell.area for cell in worksheet())) == AREAS
    for area in AREAS:
        assert [cell for cell in worksheet() if cell.area == area and cell.gates], area


def test_the_document_holds_it_and_its_links_lead_to_gates() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert worksheet_document() in text
    for cell in worksheet():
        assert all(f"\n### `{code}`\n" in text for code in cell.gates)
        assert cell.not_covered == "" or f"| not covered: {cell.not_covered} |" in text
