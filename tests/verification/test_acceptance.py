"""Waivers and severities over a verification."""

from __future__ import annotations

from datetime import date

from stackbuild.findings import Finding, Verdict
from stackbuild.site_policy import Policy
from stackbuild.spec.model import Waiver
from stackbuild.verification.acceptance import with_acceptance
from stackbuild.verification.judge.run import judge_run
from stackbuild.verification.model import HostBasics, JudgedImage, VerificationReport
from stackbuild.verification.promise import Promise
from stackbuild.verification.surroundings import Surroundings
from tests.verification.support import cpu_promise, cuda_promise, products, torch_build, whole_run

TODAY = date(2026, 11, 30)
IMPRECISE = products(fp32=3e-4)


def test_a_waived_failure_is_a_warning_that_says_why_and_who() -> None:
    found = _accepted(cpu_promise(), [_waiver()], IMPRECISE)["torch-matmul"]
    assert found.verdict is Verdict.WARN
    assert found.waived == "TF32 is wanted (ml-platform, until 2027-03-01)"


def test_a_waiver_past_its_day_waives_nothing_and_fails() -> None:
    found = _accepted(cpu_promise(), [_waiver(until=date(2026, 11, 29))], IMPRECISE)
    assert found["torch-matmul"].verdict is Verdict.FAIL
    assert found["waiver-expired"].verdict is Verdict.FAIL


def test_a_waiver_of_a_gate_that_passes_is_unused_and_fails() -> None:
    assert _accepted(cpu_promise(), [_waiver()])["waiver-unused"].verdict is Verdict.FAIL


def test_a_waiver_of_a_gate_that_was_not_judged_here_is_left_alone() -> None:
    found = _accepted(cuda_promise(), [_waiver()], torch_build("2.14.1+cu130", "13.0"))
    assert found["torch-matmul"].verdict is Verdict.SKIP
    assert "waiver-unused" not in found


def test_waivers_of_static_gates_are_not_this_reports_business() -> None:
    waivers = [_waiver(code="arch-not-covered"), _waiver(code="mixed-cuda-majors")]
    found = _accepted(cpu_promise(), waivers)
    assert "waiver-unused" not in found


def test_the_sites_severity_counts() -> None:
    found = _accepted(cpu_promise(), [], IMPRECISE, severities={"torch-matmul": "WARN"})
    assert found["torch-matmul"].verdict is Verdict.WARN


def _waiver(code: str = "torch-matmul", until: date = date(2027, 3, 1)) -> Waiver:
    return Waiver(code=code, reason="TF32 is wanted", owner="ml-platform", until=until)


def _accepted(promise: Promise, waivers, *changed, **policy) -> dict[str, Finding]:  # type: ignore[no-untyped-def]
    findings = judge_run(promise, whole_run(*changed), Surroundings())
    report = VerificationReport(
        image=JudgedImage(reference="x", id="sha256:1"),
        promise=promise,
        promise_sha256=promise.digest,
        suite_version="1",
        suite_sha256="2",
        host=HostBasics(engine="20.10"),
        gpus="none",
        started="2026-11-30T00:00:00Z",
        seconds=1,
        findings=findings,
        complete=False,
    )
    accepted = with_acceptance(report, waivers, Policy(**policy), TODAY)
    return {finding.code: finding for finding in accepted.findings}
