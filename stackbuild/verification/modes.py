"""Runs of one image in several ways of injection, compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.injection import Mode
from stackbuild.verification.judge.findings import finding, not_applicable
from stackbuild.verification.model import SuiteRun

_CODE = "injection-modes-agree"


@dataclass(frozen=True)
class ModeRun:
    """One run, and what was judged of it."""

    mode: Mode
    run: SuiteRun
    findings: tuple[Finding, ...]


def merged_findings(runs: Sequence[ModeRun], absent: Mapping[Mode, str]) -> tuple[Finding, ...]:
    """All findings with their mode as subject, after one that compares them.

    Args:
        runs: The runs that could be done.
        absent: Mode → why the engine does not have it.
    """
    return (
        compare_modes(runs, absent),
        *(_of_mode(found, run.mode) for run in runs for found in run.findings),
    )


def compare_modes(runs: Sequence[ModeRun], absent: Mapping[Mode, str]) -> Finding:
    """Gate ``injection-modes-agree``: the same gates have the same verdicts however the GPUs come."""
    modes = [run.mode for run in runs]
    details = {"modes": modes, "absent": dict(absent)}
    if len(runs) < 2:
        only = f"only {modes[0]} is available" if modes else "no way to inject a GPU is available"
        return not_applicable(_CODE, f"{only}, so there is nothing to compare").model_copy(
            update={"details": details}
        )
    verdicts: dict[tuple[str, str], dict[Mode, Verdict]] = {}
    for run in runs:
        for found in run.findings:
            verdicts.setdefault((found.code, found.subject), {})[run.mode] = found.verdict
    differing = {
        f"{code} {subject}".strip(): {mode: str(by_mode.get(mode, "not judged")) for mode in modes}
        for (code, subject), by_mode in verdicts.items()
        if len({by_mode.get(mode) for mode in modes}) > 1
    }
    if not differing:
        return finding(
            _CODE,
            Verdict.PASS,
            f"{', '.join(modes)} give the same verdicts",
            measured=", ".join(modes),
            details=details,
        )
    named = "; ".join(
        f"{gate} is {', '.join(f'{verdict} by {mode}' for mode, verdict in by_mode.items())}"
        for gate, by_mode in list(differing.items())[:3]
    )
    return finding(
        _CODE,
        Verdict.WARN,
        f"{counted(len(differing), 'gate depends', 'gates depend')} on how the GPUs are injected: {named}",
        measured=", ".join(modes),
        details={**details, "differing": differing},
    )


def _of_mode(found: Finding, mode: Mode) -> Finding:
    return found.model_copy(
        update={
            "subject": f"{mode}: {found.subject}" if found.subject else mode,
            "details": {**found.details, "injection": mode},
        }
    )
