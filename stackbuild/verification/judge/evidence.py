"""Evidence: what a profile shows, in a sentence. It decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding, not_applicable
from stackbuild.verification.model import GateResult

_CODE = "run-evidence"


def judge_evidence(results: Mapping[str, GateResult]) -> Finding:
    """The finding ``run-evidence``: PASS with what was measured, else a SKIP that leaves the report complete."""
    result = results.get("torch-evidence")
    if result is None:
        return not_applicable(_CODE, "no evidence was asked for (--evidence)")
    if result.outcome != "measured":
        why = result.error.get("message", "") or result.outcome
        return not_applicable(_CODE, f"the evidence could not be collected: {why}")
    measured = result.measured
    rates = ", ".join(
        f"{precision} {rate:g} TFLOP/s"
        for precision, rate in measured["tflops"].items()
        if isinstance(rate, int | float)
    )
    return finding(
        _CODE,
        Verdict.PASS,
        f"{_bottleneck(measured)}; {rates}, copies at {measured['copy_gbytes_per_second']:g} GB/s",
        measured=f"{measured['transfers']} transfers, {measured['synchronisations']} synchronisations",
        details={**measured, "trace": result.measured.get("trace_file", "")},
    )


def _bottleneck(measured: Mapping[str, Any]) -> str:
    operators = measured["operators"]
    if not operators:
        return "the profile names no operator"
    first = operators[0]
    if measured["device"] == "cuda":
        device = sum(row["self_us"] for row in operators)
        host = sum(row["host_us"] for row in operators)
        if host > 2 * device:
            return f"the host is the bottleneck: {host / 1000:.1f} ms against {device / 1000:.1f} ms on the device"
    return f"{first['name']} takes {first['share']:.0%} of the time"
