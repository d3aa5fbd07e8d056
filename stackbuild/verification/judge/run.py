"""Judges a whole run of the suite."""

from __future__ import annotations

from collections.abc import Collection

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.gate_codes import GATE_CODES
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.judge.distributions import judge_distributions, judge_imports
from stackbuild.verification.judge.findings import finding, not_applicable, pointless
from stackbuild.verification.judge.interpreter import judge_os, judge_python_version
from stackbuild.verification.judge.onnxruntime import judge_onnxruntime
from stackbuild.verification.judge.torch import judge_torch
from stackbuild.verification.model import SuiteRun
from stackbuild.verification.plan import device_missing, provider_missing
from stackbuild.verification.promise import Promise


def judge_run(promise: Promise, run: SuiteRun, gpus: GpuSelection) -> tuple[Finding, ...]:
    """All findings of a run: first what kept the suite from running or ending, then every gate."""
    obstacle = judge_obstacle(promise, run)
    if obstacle is not None and not run.results:
        return (obstacle, *not_run(f"not judged: {obstacle.summary}", GATE_CODES, promise))
    missing = device_missing(promise, gpus)
    results = run.results
    findings = (
        judge_python_version(promise, results.get("interpreter")),
        judge_os(promise, results.get("interpreter")),
        *judge_distributions(promise, results),
        *judge_imports(promise, results, device_missing=missing),
        *judge_torch(promise, results, device_missing=missing),
        *judge_onnxruntime(promise, results, device_missing=provider_missing(promise, gpus)),
    )
    return findings if obstacle is None else (obstacle, *findings)


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
            measured=f"{len(run.results)} gates with a result",
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
        measured=f"exit code {run.exit_code}, {len(run.results)} gates with a result",
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
