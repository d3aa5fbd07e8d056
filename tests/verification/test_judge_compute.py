"""What is computed on the device: convolutions, collectives, the stack's own model, memory, repeatability, checks."""

from __future__ import annotations

from typing import Any

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.agreement import judge_agreement, judge_tensorrt
from stackbuild.verification.judge.checks import judge_checks
from stackbuild.verification.judge.memory import judge_memory, judge_shared_memory, size_in_bytes
from stackbuild.verification.judge.repeatability import judge_checkpoint, judge_repeatable
from stackbuild.verification.judge.torch_compute import (
    judge_all_reduce,
    judge_convolution,
    judge_torch_devices,
    judge_torch_model,
)
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import PromisedFile
from tests.verification.gpu_support import L4, gpu_results
from tests.verification.support import (
    convolutions,
    cpu_promise,
    cuda_promise,
    measured,
    repeated,
    restored,
    torch_build,
)

OURS = PromisedFile(name="models/ours.py", path="/x", sha256="0")


def test_a_convolution_past_the_tolerance_or_elsewhere_fails() -> None:
    result = {"torch-convolution": convolutions(fp32=1e-3)}
    assert judge_convolution(cpu_promise(), result, "").verdict is Verdict.FAIL
    assert judge_convolution(cpu_promise(tolerance={"fp32": 1e-2}), result, "").verdict is Verdict.PASS
    on_cpu = judge_convolution(cuda_promise(), {"torch-convolution": convolutions()}, "")
    assert "computed on cpu" in on_cpu.summary


def test_torch_must_see_what_the_driver_shows() -> None:
    def seen(count: int) -> Finding:
        devices = [{"name": "NVIDIA L4"}] * count
        results = gpu_results(gpus=(L4, L4))
        results["torch-devices"] = measured("torch-devices", count=count, devices=devices, libraries=[])
        return judge_torch_devices(cuda_promise(), results, "")

    assert seen(2).verdict is Verdict.PASS
    assert (seen(1).verdict, seen(1).summary) == (
        Verdict.FAIL,
        "torch sees 1 device, the driver shows 2",
    )


def test_nccl_is_judged_where_there_are_two_gpus() -> None:
    def reduced(**values: Any) -> Finding:
        return judge_all_reduce(
            cuda_promise(), {"torch-all-reduce": measured("torch-all-reduce", **values)}, ""
        )

    assert not reduced(count=1).applies
    assert reduced(count=2, wrong=[]).verdict is Verdict.PASS
    assert "wrong on GPU 1" in reduced(count=2, wrong=[1]).summary


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ""),
        ({"operators": {"cuda": {"addmm": 2}, "cpu": {"nonzero": 1}}}, "1 nonzero on cpu"),
        ({"weight_devices": ["cpu", "cuda"]}, "weights are on cpu"),
        ({"outputs": [{"finite": False}]}, "not finite"),
        ({"outputs": []}, "returns no tensor"),
    ],
)
def test_the_stacks_own_model_is_on_the_device_as_a_whole(changes: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {
        "weight_devices": ["cuda"],
        "operators": {"cuda": {"addmm": 2}},
        "outputs": [{"finite": True}],
        "parameters": 676,
    }
    result = {"torch-model": measured("torch-model", **{**values, **changes})}
    found = judge_torch_model(cuda_promise(torch_model=OURS), result, "")
    assert found.verdict is (Verdict.FAIL if words else Verdict.PASS)
    assert words in found.summary


def test_an_operator_may_be_allowed_on_the_cpu() -> None:
    result = measured(
        "torch-model",
        weight_devices=["cuda"],
        operators={"cuda": {"addmm": 2}, "cpu": {"nonzero": 1}},
        outputs=[{"finite": True}],
        parameters=1,
    )
    promise = cuda_promise(torch_model=OURS, allow_cpu_ops=("nonzero",))
    assert judge_torch_model(promise, {"torch-model": result}, "").verdict is Verdict.PASS


def test_memory_is_judged_by_the_margin_that_the_stack_demands() -> None:
    result = measured(
        "torch-memory",
        device="cuda",
        batch=8,
        concurrency=2,
        training=False,
        weight_bytes=2 << 30,
        activation_bytes=1 << 30,
        optimizer_bytes=None,
        cache_bytes=0,
        outside_bytes=1 << 29,
        device_peak_bytes=14 << 30,
        total_bytes=16 << 30,
    )
    for margin, verdict in ((None, Verdict.PASS), (0.1, Verdict.PASS), (0.2, Verdict.FAIL)):
        promise = cuda_promise(torch_model=OURS, memory_margin=margin)
        found = judge_memory(promise, {"torch-memory": result}, "")
        assert found.verdict is verdict
        assert "batch 8 at concurrency 2 peaks at 15.0 GB of 17.2 GB" in found.summary
        assert "weights 2.1 GB, activations 1.1 GB" in found.measured


@pytest.mark.parametrize(
    ("wanted", "here", "verdict"),
    [
        ("8g", 64 << 20, Verdict.FAIL),  # case I03
        ("64m", 64 << 20, Verdict.PASS),
        (None, 64 << 20, Verdict.WARN),
        (None, 1 << 30, Verdict.PASS),
        (None, None, Verdict.WARN),
    ],
)
def test_i03_shared_memory(wanted: str | None, here: int | None, verdict: Verdict) -> None:
    results = {"interpreter": measured("interpreter", shm_bytes=here), "torch-import": torch_build()}
    found = judge_shared_memory(cpu_promise(shm_size=wanted), results)
    assert found.verdict is verdict
    assert "--shm-size" in found.next_step or verdict is Verdict.PASS


def test_shared_memory_is_no_question_without_torch() -> None:
    results = {"interpreter": measured("interpreter", shm_bytes=64 << 20)}
    assert not judge_shared_memory(cpu_promise(torch=None), results).applies


def test_sizes_are_the_engines() -> None:
    assert [size_in_bytes(text) for text in ("5", "1k", "64m", "8g")] == [5, 1024, 64 << 20, 8 << 30]


def test_what_cannot_be_repeated_is_named() -> None:
    assert judge_repeatable({"torch-repeatable": repeated()}, "").verdict is Verdict.PASS
    found = judge_repeatable({"torch-repeatable": repeated(differing=["0.weight"], own_model=False)}, "")
    assert found.verdict is Verdict.FAIL
    assert "differ in 0.weight; the stack's model gives other outputs" in found.summary


def test_a_checkpoint_must_come_back_as_it_was() -> None:
    assert judge_checkpoint({"torch-checkpoint": restored()}, "").verdict is Verdict.PASS
    found = judge_checkpoint({"torch-checkpoint": restored(same_outputs=False)}, "")
    assert found.verdict is Verdict.FAIL


def test_an_exported_model_must_agree_with_its_source() -> None:
    def agreed(**output: Any) -> Finding:
        values = {"name": "y", "shape": [2], "expected_shape": [2], "finite": True, "error": 1e-7, **output}
        promise = cpu_promise(torch_model=OURS, onnx_model="/m.onnx")
        return judge_agreement(promise, {"models-agree": measured("models-agree", outputs=[values])}, "")

    assert agreed().verdict is Verdict.PASS
    assert "off by 1.0e-03" in agreed(error=1e-3).summary
    assert agreed(shape=[3], error=None).verdict is Verdict.FAIL


def test_tensorrt_must_take_part() -> None:
    def ran(placement: dict[str, dict[str, int]], *providers: str) -> Finding:
        result = measured("ort-tensorrt", placement=placement, session_providers=list(providers))
        return judge_tensorrt(cuda_promise(tensorrt=True), {"ort-tensorrt": result}, "")

    tensorrt, cuda, cpu = (f"{name}ExecutionProvider" for name in ("Tensorrt", "CUDA", "CPU"))
    assert ran({tensorrt: {"part": 1}, cuda: {"Gemm": 1}}, tensorrt, cuda).verdict is Verdict.PASS
    assert "has no TensorrtExecutionProvider" in ran({cuda: {"Gemm": 2}}, cuda).summary
    assert "took no part" in ran({cuda: {"Gemm": 2}}, tensorrt, cuda).summary
    assert "1 Shape" in ran({tensorrt: {"part": 1}, cpu: {"Shape": 1}}, tensorrt, cpu).summary


def test_the_findings_of_a_check_are_findings() -> None:
    result = GateResult(
        name="check-0",
        outcome="measured",
        measured={
            "findings": [
                {"verdict": "PASS", "summary": "well"},
                {"verdict": "FAIL", "summary": "not", "subject": "it"},
            ]
        },
    )
    well, ill = _checked(result)
    assert (well.verdict, well.subject) == (Verdict.PASS, "checks/own.py")
    assert (ill.verdict, ill.subject, bool(ill.next_step)) == (Verdict.FAIL, "checks/own.py: it", True)


@pytest.mark.parametrize(
    ("result", "verdict", "words"),
    [
        (
            GateResult(name="check-0", outcome="raised", error={"type": "KeyError", "message": "x"}),
            Verdict.FAIL,
            "raised KeyError",
        ),
        (
            GateResult(name="check-0", outcome="hung", limit=120),
            Verdict.ERROR,
            "no answer within 120 seconds",
        ),
        (measured("check-0", findings=[]), Verdict.WARN, "yielded no finding"),
    ],
)
def test_a_check_that_says_nothing_is_a_finding(result: GateResult, verdict: Verdict, words: str) -> None:
    (found,) = _checked(result)
    assert found.verdict is verdict
    assert words in found.summary


def test_a_check_that_prints_is_a_finding_beside_its_own() -> None:
    printed = GateResult(
        name="check-0",
        outcome="measured",
        measured={"findings": [{"verdict": "PASS", "summary": "well"}]},
        output="hello\n",
        output_bytes=6,
    )
    assert [found.verdict for found in _checked(printed)] == [Verdict.PASS, Verdict.WARN]


def _checked(result: GateResult) -> tuple[Finding, ...]:
    check = PromisedFile(name="checks/own.py", path="/x", sha256="0")
    return judge_checks(cpu_promise(checks=(check,)), {"check-0": result}, "")
