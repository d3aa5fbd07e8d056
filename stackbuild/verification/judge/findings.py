"""Makes findings: the next step comes from the gate's page, the verdict of an unmeasured gate from its outcome."""

from __future__ import annotations

from typing import Any

from stackbuild.findings import Finding, Verdict
from stackbuild.gates.pages import gate_pages
from stackbuild.verification.model import GateResult

_NEEDS_NEXT_STEP = (Verdict.WARN, Verdict.FAIL, Verdict.ERROR)
_OUTPUT_LINES = 20


def finding(
    code: str,
    verdict: Verdict,
    summary: str,
    *,
    subject: str = "",
    measured: str = "",
    required: str = "",
    next_step: str = "",
    details: dict[str, Any] | None = None,
) -> Finding:
    """A finding whose next step, when there must be one and none is given, is the gate page's."""
    if not next_step and verdict in _NEEDS_NEXT_STEP:
        next_step = gate_pages()[code].next_step
    return Finding(
        code=code,
        verdict=verdict,
        summary=summary,
        subject=subject,
        measured=measured,
        required=required,
        next_step=next_step,
        details=details or {},
    )


def with_next_step(found: Finding) -> Finding:
    """The finding of another judge, with its page's next step where it needs one and has none."""
    if found.next_step or found.verdict not in _NEEDS_NEXT_STEP:
        return found
    return found.model_copy(update={"next_step": gate_pages()[found.code].next_step})


def not_applicable(code: str, why: str) -> Finding:
    """A gate with nothing to judge here; the report stays complete."""
    return Finding(code=code, verdict=Verdict.SKIP, summary=why, applies=False)


def pointless(code: str, why: str) -> Finding:
    """A gate that applies and could not be run; the report is not complete."""
    return Finding(code=code, verdict=Verdict.SKIP, summary=why)


def unmeasured(code: str, result: GateResult | None, *, subject: str = "") -> Finding:
    """What a gate without a measurement says: its own failure, or that it could not be judged.

    An exception or a crash is the image's failure. SIGKILL is most often the kernel out of memory, a
    gate past its limit may be a slow host, so these are errors.
    """
    if result is None:
        return pointless(code, "not judged: the suite ended before this gate")
    if result.outcome == "skipped":
        return pointless(code, f"not judged: it needs {', '.join(result.needs)}, which was not measured")
    details: dict[str, Any] = {"outcome": result.outcome, "seconds": result.seconds}
    if result.output:
        details["output"] = "\n".join(result.output.splitlines()[-_OUTPUT_LINES:])
        details["output_bytes"] = result.output_bytes
    if result.outcome == "raised":
        error = result.error
        details["traceback"] = error.get("traceback", "")
        raised = f"{error.get('type', 'an exception')}: {error.get('message', '')}".rstrip(": ")
        return finding(code, Verdict.FAIL, f"it raised {raised}", subject=subject, details=details)
    if result.outcome == "crashed":
        how = (
            f"with {result.signal_name}"
            if result.signal_name
            else f"with exit code {result.exit_code} and without an answer"
        )
        return finding(code, Verdict.FAIL, f"its process died {how}", subject=subject, details=details)
    if result.outcome == "killed":
        return finding(
            code,
            Verdict.ERROR,
            "its process was killed with SIGKILL, most often by the kernel for want of memory",
            subject=subject,
            next_step="Give the engine more memory and run again.",
            details=details,
        )
    if result.outcome == "hung":
        return finding(
            code,
            Verdict.ERROR,
            f"it gave no answer within {result.limit:g} seconds and was stopped",
            subject=subject,
            next_step="Run again on a host that is less busy; if it hangs there too, the image is at fault.",
            details=details,
        )
    return finding(
        code, Verdict.ERROR, f"its answer cannot be read: {result.reason}", subject=subject, details=details
    )


def measured_on_device(
    code: str, result: GateResult | None, no_device: str, *, subject: str = ""
) -> dict[str, Any] | Finding:
    """What the suite measured for a gate that computes, or the gate's finding where it measured nothing.

    Args:
        code: The gate's.
        result: What came back of it, if anything.
        no_device: Why there is no device to compute on; empty when there is one.
        subject: What the gate judges.
    """
    if no_device:
        return pointless(code, no_device)
    if result is None or result.outcome != "measured":
        return unmeasured(code, result, subject=subject)
    return result.measured
