"""What torch computes on the intended device: devices, convolution, collectives, the stack's own model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import (
    finding,
    measured_on_device,
    not_applicable,
)
from stackbuild.verification.judge.precision import described_errors, described_limits, wrong_results
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise


def judge_torch_devices(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``torch-devices``: torch initialises CUDA and sees the devices that the driver shows."""
    code = "torch-devices"
    if promise.device != "cuda":
        return not_applicable(code, "the stack promises no GPU")
    measured = measured_on_device(code, results.get(code), no_device)
    if isinstance(measured, Finding):
        return measured
    driver = results.get("cuda-driver")
    shown = len(driver.measured.get("devices", ())) if driver is not None else measured["count"]
    seen = ", ".join(device["name"] for device in measured["devices"])
    right = measured["count"] == shown > 0
    return finding(
        code,
        Verdict.PASS if right else Verdict.FAIL,
        f"torch sees {counted(measured['count'], 'device')} and ran a kernel: {seen}"
        if right
        else f"torch sees {counted(measured['count'], 'device')}, the driver shows {shown}",
        measured=seen,
        required="" if right else counted(shown, "device"),
        details={key: value for key, value in measured.items() if key != "libraries"},
    )


def judge_convolution(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``torch-convolution``: right within the stack's tolerance, on a GPU through cuDNN."""
    code = "torch-convolution"
    measured = measured_on_device(code, results.get(code), no_device)
    if isinstance(measured, Finding):
        return measured
    by_precision = measured["convolutions"]
    wrong = wrong_results(promise, by_precision)
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong)
        or f"convolutions on {promise.device} through {measured['library']} are within tolerance",
        measured=described_errors(by_precision),
        required=described_limits(promise, by_precision),
        details=dict(measured),
    )


def judge_all_reduce(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``torch-all-reduce``: NCCL sums over all GPUs, where there are two."""
    code = "torch-all-reduce"
    if promise.device != "cuda":
        return not_applicable(code, "the stack promises no GPU")
    measured = measured_on_device(code, results.get(code), no_device)
    if isinstance(measured, Finding):
        return measured
    if measured["count"] < 2:
        return not_applicable(code, "there is one GPU")
    wrong = measured["wrong"]
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        f"the sum is wrong on GPU {', '.join(str(index) for index in wrong)}"
        if wrong
        else f"NCCL summed over {measured['count']} GPUs",
        measured=f"{measured['count'] - len(wrong)} of {measured['count']} right",
        details=dict(measured),
    )


def judge_torch_model(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``torch-model``: the stack's own model runs with weights, operators and outputs on the device."""
    code = "torch-model"
    if promise.torch_model is None:
        return not_applicable(code, "the stack names no torch model")
    subject = promise.torch_model.name
    measured = measured_on_device(code, results.get(code), no_device, subject=subject)
    if isinstance(measured, Finding):
        return measured
    wrong = _misplaced(promise, measured)
    if not all(output["finite"] for output in measured["outputs"]):
        wrong.append("its outputs are not finite")
    if not measured["outputs"]:
        wrong.append("it returns no tensor")
    operators = sum(sum(counts.values()) for counts in measured["operators"].values())
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong)
        or f"all {operators} operators ran on {promise.device}, with {measured['parameters']:,} weights",
        subject=subject,
        measured=", ".join(
            f"{sum(counts.values())} operators on {device}"
            for device, counts in measured["operators"].items()
        ),
        required=f"every operator on {promise.device}",
        details=dict(measured),
    )


def _misplaced(promise: Promise, measured: Mapping[str, Any]) -> list[str]:
    wrong = []
    elsewhere = [device for device in measured["weight_devices"] if device != promise.device]
    if elsewhere:
        wrong.append(f"weights are on {', '.join(elsewhere)}")
    stray = {
        f"{name} on {device}": count
        for device, counts in measured["operators"].items()
        if device != promise.device
        for name, count in counts.items()
        if not (device == "cpu" and name in promise.allow_cpu_ops)
    }
    if stray:
        named = ", ".join(f"{count} {where}" for where, count in sorted(stray.items()))
        wrong.append(f"{sum(stray.values())} operators ran elsewhere: {named}")
    return wrong
