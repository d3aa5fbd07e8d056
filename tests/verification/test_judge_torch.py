"""torch gates (case B06)."""

from __future__ import annotations

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.torch import judge_torch
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise
from tests.verification.support import cpu_promise, cuda_promise, products, torch_build, whole_run


def test_b06_a_cpu_build_in_a_gpu_image_fails_without_a_gpu() -> None:
    promise = cuda_promise(torch="2.8.0+cpu", torch_cuda=None)
    finding = _judged(promise, torch_build("2.8.0+cpu", None), no_device="no GPU")["cpu-wheel-in-gpu-image"]
    assert finding.verdict is Verdict.FAIL
    assert "2.8.0+cpu is a CPU build" in finding.summary
    assert "variant" in finding.next_step


def test_b06_the_same_build_passes_where_no_gpu_is_promised() -> None:
    promise = cpu_promise(platform="linux/arm64", torch="2.8.0")
    assert _judged(promise, torch_build("2.8.0"))["cpu-wheel-in-gpu-image"].verdict is Verdict.PASS


def test_a_cuda_build_in_a_gpu_image_passes() -> None:
    findings = _judged(cuda_promise(), torch_build("2.14.1+cu130", "13.0"), no_device="no GPU")
    assert findings["cpu-wheel-in-gpu-image"].verdict is Verdict.PASS
    assert findings["torch-version"].verdict is Verdict.PASS
    assert findings["torch-matmul"].verdict is Verdict.SKIP
    assert findings["torch-matmul"].applies


@pytest.mark.parametrize(
    ("promised", "cuda", "measured", "built_with", "verdict"),
    [
        ("2.13.0+cpu", "", "2.13.0+cpu", None, Verdict.PASS),
        ("2.13.0+cpu", "", "2.13.1+cpu", None, Verdict.FAIL),
        ("2.14.1+cu130", "13.0", "2.14.1+cu126", "12.6", Verdict.FAIL),
        # The default index's metadata has no label, torch.__version__ has.
        ("2.14.1", "13.0", "2.14.1+cu130", "13.0", Verdict.PASS),
        ("2.14.1", "13.0", "2.14.1+cu128", "12.8", Verdict.FAIL),
        ("2.14.1", None, "2.14.1+cu128", "12.8", Verdict.PASS),
    ],
)
def test_version_and_variant_are_compared_as_far_as_they_are_promised(
    promised: str, cuda: str | None, measured: str, built_with: str | None, verdict: Verdict
) -> None:
    promise = cpu_promise(torch=promised, torch_cuda=cuda)
    assert _judged(promise, torch_build(measured, built_with))["torch-version"].verdict is verdict


@pytest.mark.parametrize(
    ("precision", "error"), [("fp64", 1e-11), ("fp32", 5e-4), ("fp16", 5e-3), ("bf16", 2e-2)]
)
def test_an_error_past_the_tolerance_fails_and_names_the_precision(precision: str, error: float) -> None:
    finding = _judged(cpu_promise(), products(**{precision: error}))["torch-matmul"]
    assert finding.verdict is Verdict.FAIL
    assert finding.summary.startswith(f"{precision} is off by {error:.1e}")


def test_tf32_is_told_from_fp32() -> None:
    assert _judged(cpu_promise(), products(fp32=3e-4))["torch-matmul"].verdict is Verdict.FAIL
    allowed = cpu_promise(tolerance={"fp32": 1e-3})
    assert _judged(allowed, products(fp32=3e-4))["torch-matmul"].verdict is Verdict.PASS


def test_a_product_on_another_device_fails() -> None:
    finding = _judged(cuda_promise(), torch_build("2.14.1+cu130", "13.0"), products("cpu"))
    assert finding["torch-matmul"].verdict is Verdict.FAIL
    assert "computed on cpu" in finding["torch-matmul"].summary


def test_a_precision_the_device_lacks_fails_only_where_it_is_promised() -> None:
    result = products()
    result.measured["products"]["bf16"] = {"unsupported": "not implemented for 'BFloat16'"}
    assert _judged(cpu_promise(), result)["torch-matmul"].verdict is Verdict.PASS
    promised = cpu_promise(tolerance={"bf16": 1e-2})
    assert _judged(promised, result)["torch-matmul"].verdict is Verdict.FAIL


def test_a_reference_that_is_wrong_itself_fails() -> None:
    result = products()
    result.measured["reference_error"] = 1e-3
    finding = _judged(cpu_promise(), result)["torch-matmul"]
    assert finding.verdict is Verdict.FAIL
    assert "the double-precision reference is off" in finding.summary


def test_an_import_that_crashes_makes_the_rest_pointless() -> None:
    crashed = GateResult(name="torch-import", outcome="crashed", signal_name="SIGILL")
    findings = _judged(cpu_promise(), crashed)
    assert findings["torch-import"].verdict is Verdict.FAIL
    assert "SIGILL" in findings["torch-import"].summary
    for code in ("torch-version", "cpu-wheel-in-gpu-image", "torch-matmul"):
        assert (findings[code].verdict, findings[code].applies) == (Verdict.SKIP, True)


def test_a_stack_without_torch_has_nothing_to_judge() -> None:
    promise = cpu_promise(torch=None)
    assert not any(finding.applies for finding in _judged(promise).values())


def _judged(promise: Promise, *changed: GateResult, no_device: str = "") -> dict[str, Finding]:
    run = whole_run(*changed)
    judged = judge_torch(promise, run.results, no_device=no_device)
    return {finding.code: finding for finding in judged}
