"""The gates of a stack through its nights: those that were ever in trouble, and what became of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.findings import Verdict
from stackbuild.nightly.page.charts import Strip, strip, verdict_shape
from stackbuild.nightly.page.state import StackState

_TROUBLE = frozenset({Verdict.FAIL, Verdict.ERROR, Verdict.WARN})


@dataclass(frozen=True)
class GateRow:
    """A gate through the nights, drawn, and how often it gave which verdict."""

    code: str
    strip: Strip
    words: str


@dataclass(frozen=True)
class Gates:
    """All gates of a stack; each code is in one of the three.

    Attributes:
        rows: Those that were ever in trouble, the newest trouble first.
        steady: Codes of the others that the newest night judged, or that none has judged lately.
        idle: Codes of those that had nothing to judge in the newest night, with why not.
    """

    rows: tuple[GateRow, ...]
    steady: tuple[str, ...]
    idle: tuple[tuple[str, str], ...]


def gates_of(state: StackState) -> Gates:
    """Sort a stack's gates.

    Args:
        state: The stack.
    """
    # Most nights share one set of verdicts, so that few sets tell of all of them.
    sets = {id(point.verdicts): point.verdicts for point in state.points}.values()
    troubled, others = [], []
    for code in dict.fromkeys(code for verdicts in sets for code in verdicts):
        if not any(verdicts.get(code) in _TROUBLE for verdicts in sets):
            others.append(code)
            continue
        found = [point.verdicts.get(code) for point in state.points]
        newest = next(number for number, verdict in enumerate(found) if verdict in _TROUBLE)
        shapes = [verdict_shape(verdict) for verdict in reversed(found)]
        troubled.append((newest, GateRow(code, strip(shapes), counted(found))))
    judged = {finding.code for finding in state.last.findings if finding.applies}
    # A gate that applies and was not judged is told above, as a finding.
    waiting = {finding.code for finding in state.attention}
    why = {finding.code: finding.summary for finding in state.idle if finding.code not in judged}
    return Gates(
        rows=tuple(row for _, row in sorted(troubled, key=lambda row: (row[0], row[1].code))),
        steady=tuple(sorted(code for code in others if code not in why and code not in waiting)),
        idle=tuple((code, why[code]) for code in others if code in why),
    )


def counted(verdicts: Sequence[Verdict | None]) -> str:
    """For example ``12 PASS, 1 FAIL``."""
    found = Counter(verdict for verdict in verdicts if verdict is not None)
    words = [f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict]]
    return ", ".join(words) or "never judged"
