"""ONNX Runtime gates (cases C01 and C04)."""

from __future__ import annotations

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.onnxruntime import judge_onnxruntime, judge_placement
from tests.verification.support import cpu_promise, cuda_promise, measured, session, whole_run

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
LOG = (
    "2026-11-30 12:00:00 [E:onnxruntime:Default, provider_bridge_ort.cc:2251 TryGetProviderInfo_CUDA] "
    "Failed to load library libonnxruntime_providers_cuda.so with error: libcurand.so.10: cannot open shared "
    "object file: No such file or directory\n"
    "[W:onnxruntime:Default, onnxruntime_pybind_state.cc:1013] Failed to create CUDAExecutionProvider.\n"
)


def test_c04_a_session_that_fell_back_fails_though_the_provider_is_listed_and_the_exit_code_is_0() -> None:
    probe = {
        "requested_providers": [CUDA],
        "available_providers": ["TensorrtExecutionProvider", CUDA, CPU],
        "session_providers": [CPU],
    }
    finding = judge_placement("ort-silent-cpu-fallback", probe, provider=CUDA, log=LOG)
    assert finding.verdict is Verdict.FAIL
    assert finding.code == "ort-silent-cpu-fallback"
    assert finding.details["missing_libraries"] == ["libcurand.so.10"]
    assert finding.summary == (
        "the session has no CUDAExecutionProvider and runs on CPUExecutionProvider; missing: libcurand.so.10"
    )
    assert finding.next_step == "Add libcurand.so.10 to the image."
    assert len(finding.details["log_lines"]) == 2


def test_c04_the_log_line_alone_is_a_failure() -> None:
    probe = session(CUDA).measured
    finding = judge_placement("ort-silent-cpu-fallback", probe, provider=CUDA, log=LOG)
    assert finding.verdict is Verdict.FAIL
    assert "could not load a provider" in finding.summary


def test_c04_nodes_on_the_cpu_are_counted_and_named() -> None:
    probe = {
        **session(CUDA).measured,
        "session_providers": [CUDA, CPU],
        "placement": {CUDA: {"MatMul": 3}, CPU: {"Shape": 1, "NonZero": 2}},
    }
    finding = judge_placement("ort-silent-cpu-fallback", probe, provider=CUDA, allow_cpu_ops=["Shape"])
    assert finding.verdict is Verdict.FAIL
    assert finding.details["stray_nodes"] == {f"NonZero on {CPU}": 2}
    assert "2 of 6 nodes" in finding.summary


def test_operators_that_may_run_on_the_cpu_do_not_fail() -> None:
    probe = {
        **session(CUDA).measured,
        "session_providers": [CUDA, CPU],
        "placement": {CUDA: {"MatMul": 3}, CPU: {"Shape": 1}},
    }
    finding = judge_placement("ort-silent-cpu-fallback", probe, provider=CUDA, allow_cpu_ops=["Shape"])
    assert finding.verdict is Verdict.PASS


def test_allowed_operators_must_be_on_the_cpu_not_on_any_other_provider() -> None:
    probe = {
        **session(CUDA).measured,
        "placement": {CUDA: {"MatMul": 3}, "TensorrtExecutionProvider": {"Shape": 1}},
    }
    finding = judge_placement("ort-silent-cpu-fallback", probe, provider=CUDA, allow_cpu_ops=["Shape"])
    assert finding.verdict is Verdict.FAIL


def test_a_profile_without_nodes_proves_nothing() -> None:
    probe = {**session().measured, "placement": {}}
    finding = judge_placement("ort-silent-cpu-fallback", probe, provider=CPU)
    assert finding.verdict is Verdict.FAIL
    assert "nobody knows" in finding.summary


def test_a_cpu_stack_passes_on_the_cpu_whatever_other_providers_complain() -> None:
    findings = _judged(cpu_promise(), session(output=LOG))
    assert findings["ort-silent-cpu-fallback"].verdict is Verdict.PASS
    assert findings["ort-session"].verdict is Verdict.PASS
    assert findings["ort-model-session"].applies is False


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"error": 2e-5}, "off by 2.0e-05"), ({"error": None, "finite": False}, "not finite")],
)
def test_wrong_numbers_fail(changes: dict[str, object], words: str) -> None:
    finding = _judged(cpu_promise(), session(**changes))["ort-session"]
    assert finding.verdict is Verdict.FAIL
    assert words in finding.summary


def test_the_stacks_own_tolerance_counts() -> None:
    findings = _judged(cpu_promise(tolerance={"fp32": 1e-3}), session(error=2e-5))
    assert findings["ort-session"].verdict is Verdict.PASS


def test_another_version_than_locked_fails_with_both() -> None:
    finding = _judged(cpu_promise(onnxruntime="1.30.0"))["ort-version"]
    assert finding.verdict is Verdict.FAIL
    assert (finding.measured, finding.required) == ("1.31.1", "1.30.0")


def test_an_onnxruntime_that_imports_torch_was_not_judged_on_its_own() -> None:
    loaded = measured("ort-import", seconds=1, version="1.31.1", torch_imported=True)
    run = whole_run(loaded)
    findings = judge_onnxruntime(cpu_promise(), run.results, no_device="")
    assert findings[0].verdict is Verdict.FAIL


def test_without_a_gpu_the_session_is_skipped_and_keeps_the_report_from_being_complete() -> None:
    run = whole_run()
    judged = judge_onnxruntime(cuda_promise(), run.results, no_device="no GPU")
    findings = {finding.code: finding for finding in judged}
    assert findings["ort-import"].verdict is Verdict.PASS
    for code in ("ort-session", "ort-silent-cpu-fallback"):
        assert findings[code].verdict is Verdict.SKIP
        assert findings[code].applies
        assert findings[code].summary == "no GPU"


def test_the_stacks_own_model_fails_when_its_outputs_are_not_finite() -> None:
    model = measured(
        "ort-model-session",
        **{**session().measured, "outputs": [{"shape": [1], "finite": False}], "inputs": {}},
    )
    findings = _judged(cpu_promise(onnx_model="m.onnx", onnx_model_sha256="0" * 64), model)
    assert findings["ort-model-session"].verdict is Verdict.FAIL
    assert "not finite" in findings["ort-model-session"].summary


def _judged(promise, *changed) -> dict[str, Finding]:  # type: ignore[no-untyped-def]
    run = whole_run(*changed)
    return {finding.code: finding for finding in judge_onnxruntime(promise, run.results, no_device="")}
