"""A report as one HTML page that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from stackbuild import __version__
from stackbuild.findings import Finding, Verdict
from stackbuild.reports.document import Document, Part, evidence
from stackbuild.reports.page_template import page_part, page_template
from stackbuild.reports.plots import drawn
from stackbuild.reports.safe_text import shortened
from stackbuild.reports.summary import GRAVEST_FIRST, counts, not_judged

_PACKAGE = "stackbuild.reports"
_GRAVE = (Verdict.FAIL, Verdict.ERROR, Verdict.WARN)
_LONGEST_LOG = 100_000


@dataclass(frozen=True)
class ShownFinding:
    """A finding, its anchor in the page, and its evidence."""

    anchor: str
    part: str
    finding: Finding
    evidence: tuple[tuple[str, str], ...]

    @property
    def open(self) -> bool:
        """Whether its evidence is shown at once."""
        return self.finding.verdict in _GRAVE


@dataclass(frozen=True)
class MatrixRow:
    """One gate: for each part the finding that stands for all of it there, or None where it was not judged."""

    code: str
    cells: tuple[ShownFinding | None, ...]

    @property
    def applies(self) -> bool:
        """Whether there was something to judge anywhere."""
        return any(cell is not None and cell.finding.applies for cell in self.cells)


def render_html(document: Document) -> str:
    """The document as a page: verdict, next steps, matrix of gates, evidence, stack, plots, log."""
    shown = _shown(document)
    matrix = _matrix(document.parts, shown)
    return page_template(_PACKAGE, "report.html.jinja").render(
        document=document,
        style=page_part(_PACKAGE, "report.css"),
        verdict=document.verdict,
        counts=counts(document.findings) or "nothing was judged",
        missing=not_judged(document.findings),
        columns=[part.name for part in document.parts] if len(document.parts) > 1 else ["Verdict"],
        rows=[row for row in matrix if row.applies],
        idle=[row for row in matrix if not row.applies],
        steps=[entry for entry in shown if entry.open and entry.finding.next_step],
        shown=[entry for entry in shown if entry.finding.applies],
        several=len(document.parts) > 1,
        differing=[row for row in document.stack if row.required and row.required != row.value],
        plots=[drawn(plot) for plot in document.plots if plot.bars],
        log=shortened(document.log, _LONGEST_LOG),
        version=__version__,
    )


def _shown(document: Document) -> list[ShownFinding]:
    """The findings, what needs attention first; within a verdict in the report's order."""
    listed = [
        ShownFinding(f"finding-{number}-{position}", part.name, finding, tuple(evidence(finding)))
        for number, part in enumerate(document.parts)
        for position, finding in enumerate(part.findings)
    ]
    return sorted(
        listed, key=lambda entry: (GRAVEST_FIRST.index(entry.finding.verdict), not entry.finding.applies)
    )


def _matrix(parts: tuple[Part, ...], shown: list[ShownFinding]) -> list[MatrixRow]:
    """Gates in the report's order against parts; of several findings of a gate the gravest."""
    gravest: dict[tuple[str, str], ShownFinding] = {}
    for entry in shown:
        gravest.setdefault((entry.finding.code, entry.part), entry)
    codes = dict.fromkeys(finding.code for part in parts for finding in part.findings)
    return [MatrixRow(code, tuple(gravest.get((code, part.name)) for part in parts)) for code in codes]
