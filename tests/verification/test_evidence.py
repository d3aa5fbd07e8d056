"""Evidence: a sentence about the profile, its trace as a file, and no say in the verdict."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from typing import Any

from stackbuild.findings import Verdict
from stackbuild.verification.evidence import keep_evidence
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.judge.evidence import judge_evidence
from stackbuild.verification.model import GateResult
from stackbuild.verification.plan import plan_gates
from tests.verification.support import cpu_promise, cuda_promise, measured, whole_run


def test_the_trace_becomes_a_file_and_the_profile_a_sentence(tmp_path: Path) -> None:
    run = keep_evidence(whole_run(_evidence()), tmp_path / "made")
    found = judge_evidence(run.results)
    assert found.verdict is Verdict.PASS
    assert "aten::addmm takes 80% of the time; float32 0.05 TFLOP/s, copies at 8 GB/s" in found.summary
    trace = Path(found.details["trace"])
    assert gzip.decompress(trace.read_bytes()) == b"{}"


def test_a_host_that_keeps_the_device_waiting_is_the_bottleneck() -> None:
    slow = _evidence(device="cuda", operators=[_operator(self_us=1000.0, host_us=9000.0)])
    found = judge_evidence({"torch-evidence": slow})
    assert "the host is the bottleneck: 9.0 ms against 1.0 ms" in found.summary


def test_evidence_that_was_not_asked_for_or_failed_leaves_a_report_complete() -> None:
    for results in ({}, {"torch-evidence": GateResult(name="torch-evidence", outcome="hung")}):
        found = judge_evidence(results)
        assert (found.verdict, found.applies) == (Verdict.SKIP, False)


def test_it_is_planned_only_when_asked_for_and_where_the_device_is() -> None:
    def planned(promise: Any, *, evidence: bool) -> bool:
        return "torch-evidence" in [g.name for g in plan_gates(promise, GpuSelection(), evidence=evidence)]

    assert planned(cpu_promise(), evidence=True)
    assert not planned(cpu_promise(), evidence=False)
    assert not planned(cuda_promise(), evidence=True)


def _operator(**values: Any) -> dict[str, Any]:
    row = {"name": "aten::addmm", "count": 2, "self_us": 80.0, "host_us": 80.0, "shapes": "", "share": 0.8}
    return {**row, **values}


def _evidence(**changes: Any) -> GateResult:
    values: dict[str, Any] = {
        "device": "cpu",
        "operators": [_operator()],
        "transfers": 0,
        "synchronisations": 0,
        "trace": base64.b64encode(gzip.compress(b"{}")).decode(),
        "tflops": {"float32": 0.05, "float16": "not implemented"},
        "copy_gbytes_per_second": 8.0,
    }
    return measured("torch-evidence", **{**values, **changes})
