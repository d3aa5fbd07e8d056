"""Judges a whole run of the suite."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stackbuild.counting import counted
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.gate_codes import GATE_CODES
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.judge.checks import judge_checks
from stackbuild.verification.judge.distributions import judge_distributions, judge_imports
from stackbuild.verification.judge.evidence import judge_evidence
from stackbuild.verification.judge.findings import finding, not_applicable, pointless
from stackbuild.verification.judge.gpu import judge_gpu
from stackbuild.verification.judge.interpreter import judge_os, judge_python_version
from stackbuild.verification.judge.memory import judge_memory, judge_shared_memory
from stackbuild.verification.judge.onnxruntime import judge_onnxruntime
from stackbuild.verification.judge.reach import device_reached
from stackbuild.verification.judge.service import judge_service
from stackbuild.verification.judge.torch import judge_torch
from stackbuild.verification.model import GateResult, SuiteRun
from stackbuild.verification.plan import device_missing
from stackbuild.verification.promise import CPU_PROVIDER, Promise
from stackbuild.verification.surroundings import Surroundings


def judge_run(promise: Promise, run: SuiteRun, surroundings: Surroundings) -> tuple[Finding, ...]:
    """All findings of a run: first what kept the suite from running or ending, then every gate.

    Args:
        promise: What the image must keep.
        run: What the suite brought back, wherever it ran.
        surroundings: The GPUs that were reserved, and what is known of the host.
    """
    gpus = surroundings.gpus
    obstacle = judge_obstacle(promise, run)
    if obstacle is not None and not run.results:
        return (obstacle, *not_run(f"not judged: {obstacle.summary}", GATE_CODES, promise))
    results = run.results
    no_device = _no_device(promise, results, gpus)
    findings = (
        judge_python_version(promise, results.get("interpreter")),
        judge_os(promise, results.get("interpreter")),
        *judge_distributions(promise, results),
        *judge_gpu(promise, results, surroundings),
        *judge_imports(promise, results, no_device=no_device),
        *judge_torch(promise, results, no_device=no_device),
        *judge_onnxruntime(promise, results, no_device="" if promise.provider == CPU_PROVIDER else no_device),
        judge_memory(promise, results, no_device),
        judge_shared_memory(promise, results),
        *judge_service(promise, results, no_device),
        *judge_checks(promise, results, no_device),
        judge_evidence(results),
    )
    return findings if obstacle is None else (obstacle, *findings)


def _no_device(promise: Promise, results: Mapping[str, GateResult], gpus: GpuSelection) -> str:
    """Why gates that compute on the promised device are pointless; empty when they are not."""
    if device_missing(promise, gpus):
        return "not judged: it needs a GPU and none was reserved"
    if promise.device == "cuda" and not device_reached(results):
        return "not judged: CUDA shows no device (see cuda-init)"
    return ""


def not_run(why: str, codes: Collection[str], promise: Promise) -> tuple[Finding, ...]:
    """A SKIP for every gate that could not be run; those with nothing to judge say so."""
    nothing = promise.source == "lock" and promise.python is None
    return tuple(not_applicable(code, why) if nothing else pointless(code, why) for code in codes)


def judge_obstacle(promise: Promise, run: SuiteRun) -> Finding | None:
    """What kept the suite from beginning or from ending, or None."""
    if run.finished:
        return None
    log = {"log": run.log[-4000:]} if run.log else {}
    if run.timed_out:
        return finding(
            "verify-timeout",
            Verdict.ERROR,
            f"the verification was stopped after its limit of {run.limit:g} seconds",
            measured=f"{counted(len(run.results), 'gate')} with a result",
            details=log,
        )
    if run.python_too_old:
        return finding(
            "python-too-old-for-suite",
            Verdict.ERROR,
            f"the image's Python is {run.python_too_old}, the suite needs 3.9 or newer",
            measured=run.python_too_old,
            required="3.9 or newer",
        )
    if not run.python:
        return _no_python(promise, run, log)
    memory = ": the kernel was out of memory" if run.out_of_memory else ""
    return finding(
        "container-exited",
        Verdict.ERROR,
        f"the container ended with exit code {run.exit_code} before the suite did{memory}",
        measured=f"exit code {run.exit_code}, {counted(len(run.results), 'gate')} with a result",
        details={**log, "out_of_memory": run.out_of_memory},
    )


def _no_python(promise: Promise, run: SuiteRun, log: dict[str, str]) -> Finding:
    code = "image-without-python"
    if run.exit_code is None:
        what = f"the image has no Python: {', '.join(run.tried)} cannot be started"
    else:
        what = f"the image's Python does not start the suite: it ended with exit code {run.exit_code}"
    details = {**log, "tried": list(run.tried)}
    if promise.python is not None:
        return finding(code, Verdict.FAIL, what, required=f"Python {promise.python}", details=details)
    if promise.source == "lock" and run.exit_code is None:
        return not_applicable(code, "the stack promises no Python, so nothing is judged from inside")
    return finding(code, Verdict.ERROR, what, details=details)
