"""Interpreter and operating system against the promise."""

from __future__ import annotations

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.findings import finding, not_applicable, unmeasured
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise


def judge_python_version(promise: Promise, result: GateResult | None) -> Finding:
    """The interpreter's version against as many parts as are promised."""
    code = "python-version"
    if promise.python is None:
        return not_applicable(code, "no Python version is promised")
    if result is None or result.outcome != "measured":
        return unmeasured(code, result)
    measured = result.measured["python"]
    wanted = promise.python.split(".")
    details = {"executable": result.measured["executable"], "prefix": result.measured["prefix"]}
    if measured.split(".")[: len(wanted)] == wanted:
        return finding(
            code, Verdict.PASS, f"Python {measured}, as promised", measured=measured, details=details
        )
    return finding(
        code,
        Verdict.FAIL,
        f"the image runs Python {measured}, promised is {promise.python}",
        measured=measured,
        required=promise.python,
        details=details,
    )


def judge_os(promise: Promise, result: GateResult | None) -> Finding:
    """Distribution and glibc against the promise."""
    code = "os-matches-lock"
    if promise.os is None and promise.glibc is None:
        return not_applicable(code, "no distribution is promised")
    if result is None or result.outcome != "measured":
        return unmeasured(code, result)
    release = result.measured["os"]
    system = f"{release.get('ID', '')} {release.get('VERSION_ID', '')}".strip()
    glibc = result.measured["glibc"] or "none"
    measured, required = f"{system}, glibc {glibc}", f"{promise.os or 'any'}, glibc {promise.glibc or 'any'}"
    if promise.os in (None, system) and promise.glibc in (None, glibc):
        return finding(code, Verdict.PASS, f"{measured}, as promised", measured=measured)
    return finding(
        code,
        Verdict.FAIL,
        f"the image is {measured}, promised is {required}",
        measured=measured,
        required=required,
    )
