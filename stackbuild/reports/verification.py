"""The document of a verification: its findings, what they were measured on, and what measuring took."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.findings import Finding
from stackbuild.reports.document import Bar, Document, Part, Plot, StackRow
from stackbuild.verification.model import VerificationReport

_UNKNOWN = "unknown"
_INJECTION = "injection"


def document_of_verification(report: VerificationReport) -> Document:
    """The document of a verification; runs in several ways of injection are a part each."""
    return Document(
        title=report.title,
        headline=report.headline,
        parts=_parts(report),
        complete=report.complete,
        started=report.started,
        seconds=report.seconds,
        stack=stack_rows(report),
        plots=_plots(report),
        log=report.log,
        log_bytes=report.log_bytes,
    )


def stack_rows(report: VerificationReport) -> tuple[StackRow, ...]:
    """The frozen stack, with what must be as in production."""
    if report.frozen_stack is None:
        return ()
    required = report.promise.must_match
    return tuple(
        StackRow(name, value or _UNKNOWN, required.get(name, ""))
        for name, value in report.frozen_stack.fields
    )


def _parts(report: VerificationReport) -> tuple[Part, ...]:
    by_mode: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_mode.setdefault(str(finding.details.get(_INJECTION, "")), []).append(finding)
    if report.injection != "all" or len(by_mode) == 1:
        return (Part(report.title, report.findings),)
    return tuple(Part(mode or "all modes", tuple(findings)) for mode, findings in by_mode.items())


def _plots(report: VerificationReport) -> tuple[Plot, ...]:
    times = tuple(
        Bar(gate.name, gate.seconds, "" if gate.outcome == "measured" else gate.outcome)
        for gate in report.gates
    )
    memory = tuple(
        Bar(_named(gate.name, what), size)
        for gate in report.gates
        for what, size in _needed(gate.memory).items()
    )
    plots = (Plot("Wall time of each gate", "s", times), Plot("Memory", "B", memory))
    return tuple(plot for plot in plots if plot.bars)


def _needed(memory: Mapping[str, int]) -> Mapping[str, int]:
    return {what: size for what, size in memory.items() if size > 0}


def _named(gate: str, what: str) -> str:
    return "/dev/shm" if what == "shm" else f"{gate}: {what}"  # noqa: S108 - a name, not a path that is written
