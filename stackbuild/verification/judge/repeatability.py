"""Repeatability: the same seed twice, and a checkpoint saved and restored."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding, measured_on_device
from stackbuild.verification.model import GateResult


def judge_repeatable(results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``torch-repeatable``: bit-equal twice from one seed in deterministic mode."""
    code = "torch-repeatable"
    measured = measured_on_device(code, results.get(code), no_device)
    if isinstance(measured, Finding):
        return measured
    wrong = []
    if measured["differing"]:
        wrong.append(f"two trainings from one seed differ in {', '.join(measured['differing'])}")
    if measured["own_model"] is False:
        wrong.append("the stack's model gives other outputs the second time")
    scope = f"seed {measured['seed']}, {measured['device']}, {measured['precision']}"
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong) or f"the same seed gives the same bits twice ({scope})",
        measured=scope,
        required="bit-equal" if wrong else "",
        details=dict(measured),
    )


def judge_checkpoint(results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``torch-checkpoint``: a state saved and restored is bit-equal and computes the same."""
    code = "torch-checkpoint"
    measured = measured_on_device(code, results.get(code), no_device)
    if isinstance(measured, Finding):
        return measured
    wrong = []
    if measured["differing"]:
        wrong.append(f"the restored state differs in {', '.join(measured['differing'])}")
    if not measured["same_outputs"]:
        wrong.append("the restored network gives other outputs")
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong) or "a checkpoint is restored bit by bit",
        measured=f"{measured['bytes']:,} bytes on {measured['device']}",
        details=dict(measured),
    )
