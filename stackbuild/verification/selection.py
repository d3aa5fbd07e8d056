"""Keeps a report to the gates that were asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stackbuild.findings import Finding, Verdict


def select_gates(findings: Iterable[Finding], codes: Collection[str]) -> tuple[Finding, ...]:
    """Turn findings of gates that were not asked for into SKIPs, so that a part never counts as complete.

    Obstacles (ERRORs) stay whatever was asked for, and so does a gate with nothing to judge.

    Args:
        findings: All findings.
        codes: The gates asked for; empty for all.
    """
    if not codes:
        return tuple(findings)
    kept: list[Finding] = []
    left_out: set[str] = set()
    for found in findings:
        if found.code in codes or found.verdict is Verdict.ERROR or not found.applies:
            kept.append(found)
        elif found.code not in left_out:
            left_out.add(found.code)
            kept.append(Finding(code=found.code, verdict=Verdict.SKIP, summary="not asked for"))
    return tuple(kept)
