"""torch: import, version and variant, and products, against the promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.gate_codes import TORCH_CODES
from stackbuild.verification.judge.findings import finding, not_applicable, pointless, unmeasured
from stackbuild.verification.judge.precision import described_errors, described_limits, wrong_results
from stackbuild.verification.judge.repeatability import judge_checkpoint, judge_repeatable
from stackbuild.verification.judge.torch_compute import (
    judge_all_reduce,
    judge_convolution,
    judge_torch_devices,
    judge_torch_model,
)
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise, variant_of

# The double-precision reference itself, checked by exact sums.
REFERENCE_TOLERANCE = 1e-13


def judge_torch(
    promise: Promise, results: Mapping[str, GateResult], *, no_device: str
) -> tuple[Finding, ...]:
    """All torch gates.

    Args:
        promise: What the image must keep.
        results: What was measured.
        no_device: Why there is no device to compute on; empty when there is one.
    """
    loaded = results.get("torch-import")
    if promise.torch is None and (promise.source == "lock" or _absent(loaded)):
        return tuple(not_applicable(code, "the stack has no torch") for code in TORCH_CODES)
    if loaded is None or loaded.outcome != "measured":
        why = "torch could not be imported" if loaded else "the suite ended before this gate"
        return (
            unmeasured("torch-import", loaded),
            *(pointless(code, f"not judged: {why}") for code in TORCH_CODES[1:]),
        )
    build = loaded.measured
    return (
        finding(
            "torch-import",
            Verdict.PASS,
            f"torch {build['version']} imported in {build['seconds']:.1f} s",
            measured=build["version"],
            details={"seconds": build["seconds"], "file": build["file"]},
        ),
        judge_version(promise, build),
        judge_variant(promise, build),
        judge_torch_devices(promise, results, no_device),
        pointless("torch-matmul", no_device)
        if no_device
        else judge_products(promise, results.get("torch-matmul")),
        judge_convolution(promise, results, no_device),
        judge_all_reduce(promise, results, no_device),
        judge_torch_model(promise, results, no_device),
        judge_repeatable(results, no_device),
        judge_checkpoint(results, no_device),
    )


def _absent(result: GateResult | None) -> bool:
    return result is not None and result.error.get("type") == "ModuleNotFoundError"


def judge_version(promise: Promise, build: Mapping[str, Any]) -> Finding:
    """Version and build variant against the promise.

    The default index's wheels carry no local label in their metadata while ``torch.__version__`` has
    one; then the public version and ``torch.version.cuda`` are what is compared.
    """
    code = "torch-version"
    measured, required = str(build["version"]), promise.torch
    if required is None:
        return not_applicable(code, f"torch {measured}; no version is promised")
    details = {"cuda": build["cuda"], "promised_cuda": promise.torch_cuda}
    same = (
        measured == required if variant_of(required) else Version(measured).public == Version(required).public
    )
    if not same:
        return finding(
            code,
            Verdict.FAIL,
            f"torch is {measured}, promised is {required}",
            measured=measured,
            required=required,
            details=details,
        )
    if promise.torch_cuda is not None and (build["cuda"] or "") != promise.torch_cuda:
        return finding(
            code,
            Verdict.FAIL,
            f"torch {measured} is built with {_cuda(build['cuda'])}, promised is {_cuda(promise.torch_cuda)}",
            measured=_cuda(build["cuda"]),
            required=_cuda(promise.torch_cuda),
            details=details,
        )
    return finding(
        code,
        Verdict.PASS,
        f"torch {measured}, {_cuda(build['cuda'])}, as promised",
        measured=measured,
        details=details,
    )


def _cuda(version: str | None) -> str:
    return f"CUDA {version}" if version else "no CUDA"


def judge_variant(promise: Promise, build: Mapping[str, Any]) -> Finding:
    """Whether a GPU stack has a torch that can use a GPU at all; needs no GPU to be judged."""
    code, version = "cpu-wheel-in-gpu-image", build["version"]
    if promise.device != "cuda":
        return finding(code, Verdict.PASS, "the stack promises no GPU", measured=_cuda(build["cuda"]))
    if build["cuda"] or build.get("hip"):
        return finding(
            code,
            Verdict.PASS,
            f"torch {version} is built with {_cuda(build['cuda'])}",
            measured=_cuda(build["cuda"]),
        )
    return finding(
        code,
        Verdict.FAIL,
        f"the stack promises a GPU and torch {version} is a CPU build",
        measured="torch.version.cuda is empty",
        required=_cuda(promise.torch_cuda) if promise.torch_cuda else "a CUDA build",
    )


def judge_products(promise: Promise, result: GateResult | None) -> Finding:
    """Each precision's error against the stack's tolerance, and where the product was computed."""
    code = "torch-matmul"
    if result is None or result.outcome != "measured":
        return unmeasured(code, result)
    measured = result.measured
    wrong: list[str] = []
    if measured["reference_error"] > REFERENCE_TOLERANCE:
        wrong.append(f"the double-precision reference is off by {measured['reference_error']:.1e}")
    wrong += wrong_results(promise, measured["products"])
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong) or f"products on {promise.device} are within tolerance",
        measured=described_errors(measured["products"]),
        required=described_limits(promise, measured["products"]),
        details=dict(measured),
    )
