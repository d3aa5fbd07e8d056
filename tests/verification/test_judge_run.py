"""Whole runs: what passes, what keeps a suite from running, and what is then said."""

from __future__ import annotations

from typing import Any

import pytest

from stackbuild.errors import ExitCode
from stackbuild.findings import Finding, Verdict, exit_code_of, is_complete
from stackbuild.verification.gate_codes import GATE_CODES, REACH_CODES
from stackbuild.verification.judge.run import judge_run
from stackbuild.verification.model import GateResult, SuiteRun
from stackbuild.verification.selection import select_gates
from stackbuild.verification.surroundings import Surroundings
from tests.verification.support import cpu_promise, cuda_promise, torch_build, whole_run

NONE = Surroundings()


def test_a_run_in_which_all_is_well_is_complete_and_answers_every_gate_in_order() -> None:
    findings = judge_run(cpu_promise(), whole_run(), NONE)
    assert [finding.code for finding in findings] == list(GATE_CODES)
    assert {f.code for f in findings if f.verdict is not Verdict.PASS} == {
        "mixed-cuda-majors",
        *REACH_CODES,
        "libraries-as-locked",
        "cudnn-shadowed",
        "torch-devices",
        "torch-all-reduce",
        "torch-model",
        "ort-model-session",
        "ort-tensorrt",
        "models-agree",
        "memory-fits",
        "service-ready",
        "service-answer",
        "service-latency",
        "stack-check",
        "run-evidence",
    }
    assert is_complete(findings)
    assert exit_code_of(findings) is ExitCode.OK


def test_a_gpu_stack_without_a_gpu_is_judged_as_far_as_it_can_be_and_is_not_complete() -> None:
    run = whole_run(torch_build("2.14.1+cu130", "13.0"))
    findings = judge_run(cuda_promise(distributions=cpu_promise().distributions), run, NONE)
    skipped = {f.code for f in findings if f.verdict is Verdict.SKIP and f.applies}
    computing = {
        "torch-devices",
        "torch-matmul",
        "torch-convolution",
        "torch-all-reduce",
        "torch-repeatable",
        "torch-checkpoint",
        "ort-session",
        "ort-silent-cpu-fallback",
    }
    assert skipped == {*computing, *REACH_CODES, "libraries-as-locked", "cudnn-shadowed"}
    assert not is_complete(findings)
    assert exit_code_of(findings) is ExitCode.OK


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        (
            {"timed_out": True, "limit": 2, "python": "3.11.2"},
            "verify-timeout",
            "stopped after its limit of 2 seconds",
        ),
        ({"python_too_old": "3.6.9", "exit_code": 3}, "python-too-old-for-suite", "Python is 3.6.9"),
        (
            {"python": "3.11.2", "exit_code": 137, "out_of_memory": True},
            "container-exited",
            "exit code 137 before the suite did: the kernel was out of memory",
        ),
    ],
)
def test_an_obstacle_is_an_error_and_no_gate_counts_as_passed(
    fields: dict[str, Any], code: str, words: str
) -> None:
    first, *others = judge_run(cpu_promise(), SuiteRun(**fields), NONE)
    assert (first.code, first.verdict) == (code, Verdict.ERROR)
    assert words in first.summary
    assert first.next_step
    assert {finding.verdict for finding in others} == {Verdict.SKIP}
    assert not is_complete([first, *others])
    assert exit_code_of([first, *others]) is ExitCode.NOT_JUDGED


def test_an_obstacle_in_the_middle_keeps_what_was_judged_before() -> None:
    results = {name: whole_run().results[name] for name in ("interpreter", "torch-import")}
    run = SuiteRun(results=results, python="3.11.2", exit_code=137)
    findings = _by_code(judge_run(cpu_promise(), run, NONE))
    assert findings["container-exited"].verdict is Verdict.ERROR
    assert findings["python-version"].verdict is Verdict.PASS
    assert findings["torch-version"].verdict is Verdict.PASS
    assert findings["torch-matmul"].verdict is Verdict.SKIP
    assert "ended before this gate" in findings["torch-matmul"].summary


def test_a_promised_python_that_is_not_there_is_the_images_fault() -> None:
    first, *_ = judge_run(cpu_promise(), SuiteRun(tried=("/opt/venv/bin/python",)), NONE)
    assert (first.code, first.verdict) == ("image-without-python", Verdict.FAIL)
    assert "/opt/venv/bin/python" in first.summary


def test_a_promised_python_that_does_not_start_is_the_images_fault_and_its_words_are_kept() -> None:
    run = SuiteRun(exit_code=127, log="python: error while loading shared libraries: libpython3.11.so.1.0")
    first, *_ = judge_run(cpu_promise(), run, NONE)
    assert (first.code, first.verdict) == ("image-without-python", Verdict.FAIL)
    assert "libpython3.11.so.1.0" in first.details["log"]


def test_a_stack_that_promises_no_python_has_nothing_to_judge_from_inside() -> None:
    promise = cpu_promise(python=None, distributions=(), torch=None, onnxruntime=None)
    findings = judge_run(promise, SuiteRun(tried=("python",)), NONE)
    assert not any(finding.applies for finding in findings)
    assert is_complete(findings)


@pytest.mark.parametrize(
    ("result", "verdict", "words"),
    [
        ({"outcome": "crashed", "signal_name": "SIGSEGV"}, Verdict.FAIL, "died with SIGSEGV"),
        ({"outcome": "crashed", "exit_code": 0}, Verdict.FAIL, "exit code 0 and without an answer"),
        ({"outcome": "killed", "signal_name": "SIGKILL"}, Verdict.ERROR, "want of memory"),
        ({"outcome": "hung", "limit": 120}, Verdict.ERROR, "no answer within 120 seconds"),
        ({"outcome": "garbled", "reason": "not JSON"}, Verdict.ERROR, "cannot be read: not JSON"),
        (
            {"outcome": "raised", "error": {"type": "RuntimeError", "message": "CUDA error"}},
            Verdict.FAIL,
            "RuntimeError: CUDA error",
        ),
        ({"outcome": "skipped", "needs": ["torch-import"]}, Verdict.SKIP, "needs torch-import"),
    ],
)
def test_every_way_to_go_without_a_measurement_has_its_verdict(
    result: dict[str, Any], verdict: Verdict, words: str
) -> None:
    run = whole_run(GateResult(name="torch-matmul", **result))
    finding = _by_code(judge_run(cpu_promise(), run, NONE))["torch-matmul"]
    assert finding.verdict is verdict
    assert words in finding.summary
    assert bool(finding.next_step) == (verdict is not Verdict.SKIP)


def test_another_python_or_distribution_than_promised_fails() -> None:
    promise = cpu_promise(python="3.11.9", os="debian 13", glibc="2.41")
    findings = _by_code(judge_run(promise, whole_run(), NONE))
    assert findings["python-version"].required == "3.11.9"
    assert findings["python-version"].verdict is Verdict.FAIL
    assert findings["os-matches-lock"].measured == "debian 12, glibc 2.36"
    assert findings["os-matches-lock"].verdict is Verdict.FAIL


def test_a_version_promised_by_its_first_parts_is_met_by_any_patch_release() -> None:
    promise = cpu_promise(python="3.11")
    assert _by_code(judge_run(promise, whole_run(), NONE))["python-version"].verdict is Verdict.PASS
    promise = cpu_promise(python="3.1")
    assert _by_code(judge_run(promise, whole_run(), NONE))["python-version"].verdict is Verdict.FAIL


def test_a_report_on_some_gates_is_never_complete_and_keeps_obstacles() -> None:
    findings = judge_run(cpu_promise(), whole_run(), NONE)
    selected = _by_code(select_gates(findings, ["torch-matmul"]))
    assert selected["torch-matmul"].verdict is Verdict.PASS
    assert selected["python-version"].verdict is Verdict.SKIP
    assert not is_complete(selected.values())
    obstacle, *_ = select_gates(judge_run(cpu_promise(), SuiteRun(timed_out=True), NONE), ["torch-matmul"])
    assert obstacle.code == "verify-timeout"


def _by_code(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.code: finding for finding in findings}
