"""The image as a service: ready in time, the recorded answer, and its latency."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.gate_codes import SERVICE_CODES
from stackbuild.verification.judge.findings import finding, not_applicable, pointless, unmeasured
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise, PromisedService

_SHOWN = 2000


def judge_service(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> tuple[Finding, ...]:
    """Gates ``service-ready``, ``service-answer`` and ``service-latency``."""
    if promise.service is None:
        return tuple(not_applicable(code, "the spec describes no service") for code in SERVICE_CODES)
    if no_device:
        return tuple(pointless(code, no_device) for code in SERVICE_CODES)
    result = results.get("service")
    if result is None:
        why = "not judged: the service is started only by a run in a container here"
        return tuple(pointless(code, why) for code in SERVICE_CODES)
    if result.outcome != "measured":
        return (
            _not_started(result),
            *(pointless(code, "not judged: the service did not become ready") for code in SERVICE_CODES[1:]),
        )
    measured = result.measured
    within = promise.service.service.ready_within
    if not measured["ready"]:
        return (
            finding(
                "service-ready",
                Verdict.FAIL,
                f"the service did not answer within {within} seconds; last: {measured['last']}",
                measured=measured["last"],
                required=f"an answer below 400 from {promise.service.service.ready}",
                details={"log": result.output},
            ),
            *(pointless(code, "not judged: the service did not become ready") for code in SERVICE_CODES[1:]),
        )
    return (
        finding(
            "service-ready",
            Verdict.PASS,
            f"the service was ready after {measured['ready_seconds']:.1f} s",
            measured=f"{measured['ready_seconds']:.1f} s",
            required=f"{within} s",
        ),
        judge_answer(promise.service, measured),
        judge_latency(promise.service, measured),
    )


def _not_started(result: GateResult) -> Finding:
    if result.outcome == "crashed":
        return finding(
            "service-ready",
            Verdict.FAIL,
            f"the image's entrypoint ended with exit code {result.exit_code}",
            measured=f"exit code {result.exit_code}",
            details={"log": result.output},
        )
    return unmeasured("service-ready", result)


def judge_answer(promised: PromisedService, measured: Mapping[str, Any]) -> Finding:
    """Gate ``service-answer``: status, and the recorded answer within the tolerance."""
    code = "service-answer"
    answer = base64.b64decode(measured["answer"])
    details = {"answer": answer[:_SHOWN].decode("utf-8", "replace"), "bytes": measured["answer_bytes"]}
    wrong: list[str] = []
    if not 200 <= measured["status"] < 300:
        wrong.append(f"it answered with status {measured['status']}")
    elif promised.answer is not None:
        recorded = Path(promised.answer.path).read_bytes()
        wrong = list(_differences(recorded, answer, promised.service.tolerance))
    return finding(
        code,
        Verdict.FAIL if wrong else Verdict.PASS,
        "; ".join(wrong[:3])
        or (
            f"the answer is the recorded one, within {promised.service.tolerance:g}"
            if promised.answer is not None
            else "it answered; no answer is recorded to compare with"
        ),
        measured=f"status {measured['status']}, {measured['answer_bytes']} bytes",
        required=promised.answer.name if promised.answer is not None else "a status of 2xx",
        details=details,
    )


def judge_latency(promised: PromisedService, measured: Mapping[str, Any]) -> Finding:
    """Gate ``service-latency``: no request fails, and 95 % are answered in time."""
    code = "service-latency"
    latency, failures = measured["latency"], measured["failures"]
    load = f"{measured['requests']} requests, {measured['concurrency']} at a time"
    limit = promised.service.latency
    if failures:
        return finding(
            code,
            Verdict.FAIL,
            f"{len(failures)} of {load} failed: {failures[0]}",
            measured=f"{len(failures)} failures",
            details=dict(measured, answer=""),
        )
    median, most = latency["p50"] * 1000, latency["p95"] * 1000
    late = limit is not None and most > limit
    return finding(
        code,
        Verdict.FAIL if late else Verdict.PASS,
        f"95 % of {load} were answered within {most:.1f} ms"
        + (f", allowed are {limit:g} ms" if late else ""),
        measured=f"median {median:.1f} ms, 95 % {most:.1f} ms, maximum {latency['max'] * 1000:.1f} ms",
        required=f"95 % within {limit:g} ms" if limit is not None else "",
        details=dict(measured, answer=""),
    )


def _differences(recorded: bytes, answer: bytes, tolerance: float) -> Iterator[str]:
    try:
        wanted, given = json.loads(recorded), json.loads(answer)
    except ValueError:
        if recorded != answer:
            yield f"the answer has {len(answer)} bytes that are not the recorded {len(recorded)}"
        return
    yield from _json_differences(wanted, given, tolerance, "answer")


def _json_differences(wanted: Any, given: Any, tolerance: float, where: str) -> Iterator[str]:
    if _is_number(wanted) and _is_number(given):
        if not math.isclose(wanted, given, rel_tol=tolerance, abs_tol=tolerance * 1e-3):
            yield f"{where} is {given}, recorded is {wanted}"
    elif isinstance(wanted, dict) and isinstance(given, dict):
        for name in sorted({*wanted, *given}):
            if name not in given or name not in wanted:
                yield f"{where}.{name} is {'missing' if name not in given else 'new'}"
            else:
                yield from _json_differences(wanted[name], given[name], tolerance, f"{where}.{name}")
    elif isinstance(wanted, list) and isinstance(given, list):
        if len(wanted) != len(given):
            yield f"{where} has {len(given)} entries, recorded are {len(wanted)}"
        for number, pair in enumerate(zip(wanted, given, strict=False)):
            yield from _json_differences(*pair, tolerance, f"{where}[{number}]")
    elif isinstance(wanted, bool) != isinstance(given, bool) or wanted != given:  # Python's True is 1
        yield f"{where} is {given!r}, recorded is {wanted!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
