"""The image as a service: answers compared value by value, latency by its 95th percentile."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.spec.model import ServiceSpec
from stackbuild.verification.gate_codes import SERVICE_CODES
from stackbuild.verification.judge.service import judge_service
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import PromisedFile, PromisedService
from tests.verification.support import cpu_promise, measured


@pytest.mark.parametrize(
    ("recorded", "given", "words"),
    [
        (b'{"a": [1.0, 2.0]}', b'{"a":[1.0,2.0000001]}', ""),
        (b'{"a": [1.0, 2.0]}', b'{"a": [1.0, 2.1]}', "answer.a[1] is 2.1, recorded is 2.0"),
        (b'{"a": 1}', b'{"b": 1}', "answer.a is missing; answer.b is new"),
        (b"[1, 2]", b"[1]", "has 1 entries, recorded are 2"),
        (b'{"ok": true}', b'{"ok": 1}', "answer.ok is 1, recorded is True"),
        (b"plain", b"plain", ""),
        (b"plain", b"other!", "6 bytes that are not the recorded 5"),
    ],
)
def test_an_answer_is_compared_with_the_recorded_one(
    tmp_path: Path, recorded: bytes, given: bytes, words: str
) -> None:
    answer = tmp_path / "answer"
    answer.write_bytes(recorded)
    found = _judged(_asked(given), answer=answer, tolerance=1e-6)["service-answer"]
    assert found.verdict is (Verdict.FAIL if words else Verdict.PASS)
    assert words in found.summary


def test_a_status_that_is_an_error_fails_without_a_recorded_answer() -> None:
    assert _judged(_asked(b""))["service-answer"].verdict is Verdict.PASS
    found = _judged(_asked(b"", status=404))["service-answer"]
    assert (found.verdict, found.summary) == (Verdict.FAIL, "it answered with status 404")


def test_latency_is_judged_by_the_95th_percentile_in_milliseconds() -> None:
    latency = {"p50": 0.010, "p95": 0.120, "max": 0.500}
    assert _judged(_asked(b"", latency=latency))["service-latency"].verdict is Verdict.PASS
    assert _judged(_asked(b"", latency=latency), latency=150)["service-latency"].verdict is Verdict.PASS
    late = _judged(_asked(b"", latency=latency), latency=100)["service-latency"]
    assert late.verdict is Verdict.FAIL
    assert "within 120.0 ms, allowed are 100 ms" in late.summary
    failed = _judged(_asked(b"", failures=["status 500"]))["service-latency"]
    assert "1 of 20 requests, 4 at a time failed: status 500" in failed.summary


@pytest.mark.parametrize(
    ("result", "verdict", "words"),
    [
        (GateResult(name="service", outcome="crashed", exit_code=3), Verdict.FAIL, "exit code 3"),
        (GateResult(name="service", outcome="hung", limit=9), Verdict.ERROR, "within 9 seconds"),
        (measured("service", ready=False, last="status 503"), Verdict.FAIL, "last: status 503"),
        (None, Verdict.SKIP, "only by a run in a container"),
    ],
)
def test_a_service_that_is_not_ready_makes_the_rest_pointless(
    result: GateResult | None, verdict: Verdict, words: str
) -> None:
    found = _judged(result)
    assert found["service-ready"].verdict is verdict
    assert words in found["service-ready"].summary
    assert {found[code].verdict for code in SERVICE_CODES[1:]} == {Verdict.SKIP}
    assert all(found[code].applies for code in SERVICE_CODES)


def test_a_stack_that_is_no_service_has_nothing_to_judge() -> None:
    assert not any(found.applies for found in judge_service(cpu_promise(), {}, ""))


def _asked(answer: bytes, **changes: Any) -> GateResult:
    values: dict[str, Any] = {
        "ready": True,
        "ready_seconds": 0.5,
        "status": 200,
        "answer": base64.b64encode(answer).decode(),
        "answer_bytes": len(answer),
        "requests": 20,
        "concurrency": 4,
        "failures": [],
        "latency": {"p50": 0.01, "p95": 0.02, "max": 0.03},
    }
    return measured("service", **{**values, **changes})


def _judged(result: GateResult | None, *, answer: Path | None = None, **service: Any) -> dict[str, Finding]:
    file = PromisedFile(name=answer.name, path=str(answer), sha256="0") if answer is not None else None
    promised = PromisedService(service=ServiceSpec(port=8080, **service), answer=file)
    results = {"service": result} if result is not None else {}
    return {found.code: found for found in judge_service(cpu_promise(service=promised), results, "")}
