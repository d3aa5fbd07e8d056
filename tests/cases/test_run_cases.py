"""Failures that people reported of running containers: what was measured, and the verdict it must have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.findings import Finding, Verdict
from stackbuild.verification.judge.libraries import judge_libraries
from stackbuild.verification.judge.nvml_failure import judge_nvml_failure
from stackbuild.verification.judge.onnxruntime import judge_placement
from stackbuild.verification.judge.start_failure import judge_start_failure
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise
from stackbuild.verification.surroundings import Surroundings

CASES = sorted((Path(__file__).parent / "run").glob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(path)
    return loaded


def judged(case: dict[str, Any]) -> list[Finding]:
    """The findings on what a case says was measured."""
    if "nvml" in case:
        nvml = case["nvml"]
        surroundings = Surroundings(**nvml.get("surroundings", {}))
        return [
            judge_nvml_failure(
                nvml["status"], nvml["words"], ok_at_start=nvml["ok-at-start"], surroundings=surroundings
            )
        ]
    if "engine" in case:
        return [judge_start_failure(case["engine"])]
    if "session" in case:
        session = case["session"]
        return [
            judge_placement(
                "ort-silent-cpu-fallback",
                session["measured"],
                provider=session["provider"],
                allow_cpu_ops=(),
                log=session["log"],
            )
        ]
    loaded = GateResult(name="torch-import", outcome="measured", measured={"libraries": case["libraries"]})
    promise = Promise(source="nothing", device="cuda")
    return list(judge_libraries(promise, {"torch-import": loaded}))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_verdict_is_the_one_the_report_deserved(path: Path) -> None:
    case = read(path)
    found = {finding.code: finding for finding in judged(case)}
    finding = found[case["code"]]
    assert finding.verdict is Verdict(case["verdict"]), finding
    for word in case.get("words", ()):
        assert word in f"{finding.summary} {finding.next_step}"
    if case["verdict"] in ("FAIL", "ERROR"):
        assert finding.next_step
