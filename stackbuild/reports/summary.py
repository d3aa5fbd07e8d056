"""Counting words that every format uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stackbuild.findings import Finding, Verdict

GRAVEST_FIRST = (Verdict.FAIL, Verdict.ERROR, Verdict.WARN, Verdict.PASS, Verdict.SKIP)
_WORDS = {
    Verdict.FAIL: "failed",
    Verdict.ERROR: "could not be judged",
    Verdict.WARN: "with a warning",
    Verdict.PASS: "passed",
    Verdict.SKIP: "skipped",
}


def leading_verdict(findings: Sequence[Finding]) -> Verdict:
    """The verdict that stands for all: FAIL before ERROR before WARN before PASS; SKIP for no finding at all."""
    present = {finding.verdict for finding in findings}
    return next((verdict for verdict in GRAVEST_FIRST if verdict in present), Verdict.SKIP)


def counts(findings: Sequence[Finding]) -> str:
    """For example ``1 failed, 12 passed``; gates with nothing to judge are not counted."""
    counted = Counter(finding.verdict for finding in findings if finding.applies)
    return ", ".join(f"{counted[verdict]} {_WORDS[verdict]}" for verdict in GRAVEST_FIRST if counted[verdict])


def not_judged(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Codes of gates that apply and were not judged, each once: what keeps a report from being complete."""
    return tuple(
        dict.fromkeys(
            finding.code
            for finding in findings
            if finding.verdict is Verdict.ERROR or (finding.verdict is Verdict.SKIP and finding.applies)
        )
    )


def not_applicable(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Codes of gates that had nothing to judge."""
    return tuple(finding.code for finding in findings if not finding.applies)
