"""The stack's own checks: what they yield are findings, and so is how they end."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding, not_applicable, pointless, unmeasured
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise

_CODE = "stack-check"


def judge_checks(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> tuple[Finding, ...]:
    """Gate ``stack-check``: every finding of every check, each with the check's file as its subject."""
    if not promise.checks:
        return (not_applicable(_CODE, "the stack has no checks of its own"),)
    if no_device:
        return (pointless(_CODE, no_device),)
    return tuple(
        found
        for number, check in enumerate(promise.checks)
        for found in _judged(check.name, results.get(f"check-{number}"))
    )


def _judged(name: str, result: GateResult | None) -> tuple[Finding, ...]:
    if result is None or result.outcome != "measured":
        return (unmeasured(_CODE, result, subject=name),)
    found = [
        finding(
            _CODE,
            Verdict(entry["verdict"]),
            entry["summary"],
            subject=f"{name}: {entry['subject']}" if entry.get("subject") else name,
            measured=entry.get("measured", ""),
            required=entry.get("required", ""),
            next_step=entry.get("next_step", ""),
        )
        for entry in result.measured["findings"]
    ]
    if not found:
        found.append(
            finding(
                _CODE, Verdict.WARN, "the check yielded no finding, so nobody knows what it saw", subject=name
            )
        )
    if result.output_bytes:
        found.append(
            finding(
                _CODE,
                Verdict.WARN,
                f"the check printed {result.output_bytes} bytes; what it has to say belongs into its findings",
                subject=name,
                details={"output": result.output},
            )
        )
    return tuple(found)
