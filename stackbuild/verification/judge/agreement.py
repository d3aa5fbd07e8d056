"""An exported model against its source, and the TensorRT provider where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import (
    finding,
    measured_on_device,
    not_applicable,
)
from stackbuild.verification.judge.precision import tolerance_of
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import CPU_PROVIDER, TENSORRT_PROVIDER, Promise


def judge_agreement(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``models-agree``: torch and ONNX Runtime give the same outputs for the same inputs."""
    code = "models-agree"
    if promise.onnx_model is None or promise.torch_model is None:
        return not_applicable(code, "the stack does not name both an ONNX and a torch model")
    measured = measured_on_device(code, results.get(code), no_device, subject=promise.onnx_model)
    if isinstance(measured, Finding):
        return measured
    tolerance = tolerance_of(promise)["fp32"]
    wrong = []
    for output in measured["outputs"]:
        if output["shape"] != output["expected_shape"]:
            wrong.append(
                f"{output['name']} has shape {output['shape']}, torch gives {output['expected_shape']}"
            )
        elif not output["finite"]:
            wrong.append(f"{output['name']} is not finite")
        elif output["error"] > tolerance:
            wrong.append(f"{output['name']} is off by {output['error']:.1e}, allowed is {tolerance:.1e}")
    errors = [output["error"] for output in measured["outputs"] if output["error"] is not None]
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong) or f"{len(errors)} outputs agree within tolerance",
        subject=promise.onnx_model,
        measured=f"error {max(errors):.1e}" if errors else "",
        required=f"error at most {tolerance:.1e}",
        details=dict(measured),
    )


def judge_tensorrt(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``ort-tensorrt``: TensorRT takes part in the session, and what it leaves runs on CUDA."""
    code = "ort-tensorrt"
    if not promise.tensorrt:
        return not_applicable(code, "the spec does not ask for TensorRT")
    measured = measured_on_device(code, results.get(code), no_device)
    if isinstance(measured, Finding):
        return measured
    placement: Mapping[str, Mapping[str, int]] = measured["placement"]
    session = measured["session_providers"]
    stray = {
        name: count
        for name, count in placement.get(CPU_PROVIDER, {}).items()
        if name not in promise.allow_cpu_ops
    }
    wrong = ""
    if TENSORRT_PROVIDER not in session:
        wrong = f"the session has no {TENSORRT_PROVIDER} and runs on {', '.join(session)}"
    elif not placement.get(TENSORRT_PROVIDER):
        wrong = "TensorRT took no part of the model"
    elif stray:
        wrong = (
            f"nodes ran on the CPU: {', '.join(f'{count} {name}' for name, count in sorted(stray.items()))}"
        )
    counts = ", ".join(f"{sum(nodes.values())} nodes on {where}" for where, nodes in placement.items())
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        wrong or f"TensorRT ran its part: {counts}",
        measured=counts or ", ".join(session),
        required=TENSORRT_PROVIDER,
        details=dict(measured),
    )
