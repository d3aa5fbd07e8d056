"""ONNX Runtime: import, version, sessions, and where their nodes ran, against the promise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.gate_codes import ONNXRUNTIME_CODES
from stackbuild.verification.judge.agreement import judge_agreement, judge_tensorrt
from stackbuild.verification.judge.findings import finding, not_applicable, pointless, unmeasured
from stackbuild.verification.judge.precision import tolerance_of
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import CPU_PROVIDER, Promise

# onnxruntime_pybind_state.cc (ONNX Runtime 1.16–1.32) logs these when a provider's library cannot be loaded.
_FALLBACK_LINE = re.compile(r"Failed to create \w+ExecutionProvider|Failed to load library lib\S+")
_MISSING_LIBRARY = re.compile(r"(lib[\w.+-]+\.so[.\d]*): cannot open shared object file")


def judge_onnxruntime(
    promise: Promise, results: Mapping[str, GateResult], *, no_device: str
) -> tuple[Finding, ...]:
    """All ONNX Runtime gates but the one about distributions; ``no_device`` says why there is no device."""
    loaded = results.get("ort-import")
    absent = loaded is not None and loaded.error.get("type") == "ModuleNotFoundError"
    if promise.onnxruntime is None and (promise.source == "lock" or absent):
        return tuple(not_applicable(code, "the stack has no ONNX Runtime") for code in ONNXRUNTIME_CODES)
    if loaded is None or loaded.outcome != "measured":
        why = "onnxruntime could not be imported" if loaded else "the suite ended before this gate"
        return (
            unmeasured("ort-import", loaded),
            *(pointless(code, f"not judged: {why}") for code in ONNXRUNTIME_CODES[1:]),
        )
    build = loaded.measured
    judged = [
        finding(
            "ort-import",
            Verdict.FAIL if build["torch_imported"] else Verdict.PASS,
            "importing onnxruntime imported torch, so it was not judged on its own"
            if build["torch_imported"]
            else f"onnxruntime {build['version']} imported in {build['seconds']:.1f} s, without torch",
            measured=build["version"],
            details=dict(build),
        ),
        judge_version(promise, build),
    ]
    if no_device:
        return (
            *judged,
            *(pointless(code, no_device) for code in ONNXRUNTIME_CODES[2:4]),
            _model_skip(promise, no_device),
            judge_tensorrt(promise, results, no_device),
            judge_agreement(promise, results, no_device),
        )
    session = results.get("ort-session")
    judged.append(judge_session(promise, session))
    if session is None or session.outcome != "measured":
        judged.append(pointless("ort-silent-cpu-fallback", "not judged: there was no session"))
    else:
        judged.append(
            judge_placement(
                "ort-silent-cpu-fallback",
                session.measured,
                provider=promise.provider,
                allow_cpu_ops=promise.allow_cpu_ops,
                log=session.output,
            )
        )
    return (
        *judged,
        judge_model(promise, results.get("ort-model-session")),
        judge_tensorrt(promise, results, ""),
        judge_agreement(promise, results, ""),
    )


def _model_skip(promise: Promise, why: str) -> Finding:
    if promise.onnx_model is None:
        return not_applicable("ort-model-session", "the stack names no ONNX model")
    return pointless("ort-model-session", why)


def judge_version(promise: Promise, build: Mapping[str, Any]) -> Finding:
    """The imported module's version against the promise."""
    code, measured, required = "ort-version", build["version"], promise.onnxruntime
    if required is None:
        return not_applicable(code, f"onnxruntime {measured}; no version is promised")
    same = measured == required
    return finding(
        code,
        Verdict.PASS if same else Verdict.FAIL,
        f"onnxruntime {measured}, as promised"
        if same
        else f"onnxruntime is {measured}, promised is {required}",
        measured=measured,
        required="" if same else required,
    )


def judge_session(promise: Promise, result: GateResult | None) -> Finding:
    """The shipped model's outputs against the reference."""
    code = "ort-session"
    if result is None or result.outcome != "measured":
        return unmeasured(code, result)
    measured = result.measured
    tolerance = tolerance_of(promise)["fp32"]
    required = f"error at most {tolerance:.1e}"
    if not measured["finite"]:
        return finding(
            code,
            Verdict.FAIL,
            "the session's outputs are not finite",
            required=required,
            details=dict(measured),
        )
    error = measured["error"]
    right = error <= tolerance
    return finding(
        code,
        Verdict.PASS if right else Verdict.FAIL,
        "the shipped model's outputs are within tolerance"
        if right
        else f"the shipped model's outputs are off by {error:.1e}, allowed is {tolerance:.1e}",
        measured=f"error {error:.1e}",
        required=required,
        details=dict(measured),
    )


def judge_model(promise: Promise, result: GateResult | None) -> Finding:
    """The stack's own model: it runs, its outputs are finite, its nodes are where they should be."""
    code = "ort-model-session"
    if promise.onnx_model is None:
        return not_applicable(code, "the stack names no ONNX model")
    if result is None or result.outcome != "measured":
        return unmeasured(code, result, subject=promise.onnx_model)
    placed = judge_placement(
        code,
        result.measured,
        provider=promise.provider,
        allow_cpu_ops=promise.allow_cpu_ops,
        log=result.output,
        subject=promise.onnx_model,
    )
    if placed.verdict is Verdict.PASS and not all(output["finite"] for output in result.measured["outputs"]):
        return finding(
            code,
            Verdict.FAIL,
            "the model's outputs are not finite",
            subject=promise.onnx_model,
            details=dict(result.measured),
        )
    return placed


def judge_placement(
    code: str,
    measured: Mapping[str, Any],
    *,
    provider: str,
    allow_cpu_ops: Sequence[str] = (),
    log: str = "",
    subject: str = "",
) -> Finding:
    """Whether the session has the provider and every node ran on it.

    Args:
        code: The gate that asks.
        measured: ``requested_providers``, ``available_providers``, ``session_providers``, and ``placement``
            (provider → operator → number of nodes).
        provider: The intended provider.
        allow_cpu_ops: Operators that may run on the CPU all the same.
        log: What the process printed; ORT says there why a provider was not made.
        subject: The model.
    """
    session_providers = list(measured["session_providers"])
    placement: Mapping[str, Mapping[str, int]] = measured.get("placement") or {}
    complaints = [line.strip() for line in log.splitlines() if _FALLBACK_LINE.search(line)]
    libraries = sorted(set(_MISSING_LIBRARY.findall(log)))
    stray = {
        f"{operator} on {where}": count
        for where, operators in placement.items()
        if where != provider
        for operator, count in operators.items()
        if not (where == CPU_PROVIDER and operator in allow_cpu_ops)
    }
    total = sum(count for operators in placement.values() for count in operators.values())
    details = {
        **measured,
        "provider": provider,
        "missing_libraries": libraries,
        "log_lines": complaints,
        "nodes": total,
        "stray_nodes": stray,
    }
    why = f"; missing: {', '.join(libraries)}" if libraries else ""
    next_step = f"Add {', '.join(libraries)} to the image." if libraries else ""
    if provider not in session_providers:
        summary = (
            f"the session has no {provider} and runs on {', '.join(session_providers) or 'nothing'}{why}"
        )
    elif stray:
        named = ", ".join(f"{count} {node}" for node, count in sorted(stray.items()))
        summary = f"{sum(stray.values())} of {total} nodes ran elsewhere than {provider}: {named}"
    elif complaints and provider != CPU_PROVIDER:
        summary = f"ONNX Runtime reports that it could not load a provider{why}"
    elif not total:
        summary = "the profile names no node, so nobody knows where they ran"
    else:
        return finding(
            code,
            Verdict.PASS,
            f"all {total} nodes ran where they should, on {provider}",
            subject=subject,
            measured=", ".join(session_providers),
            required=provider,
            details=details,
        )
    return finding(
        code,
        Verdict.FAIL,
        summary,
        subject=subject,
        measured=", ".join(session_providers),
        required=provider,
        next_step=next_step,
        details=details,
    )
