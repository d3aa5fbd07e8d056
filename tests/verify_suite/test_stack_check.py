"""The stack's own checks: what they are given, what they may yield, and how they run in the suite."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tests.verify_suite.support import results_of


def _planned(path: Path, name: str = "check-0", limit: float = 20) -> dict[str, Any]:
    options = {"file": str(path), "device": "cpu", "seed": 7, "batch": 3, "results_folder": "/nowhere"}
    return {
        "name": name,
        "worker": "checks",
        "function": "suite.gates.stack_check:measure",
        "limit": limit,
        "options": options,
    }


def test_each_check_runs_by_itself_and_each_ending_is_a_result(tmp_path: Path) -> None:
    bodies = {
        "well": "yield context.passed('well', measured=f'{context.device} {context.seed} {context.batch}')",
        "raises": "raise KeyError('gone')\n    yield",
        "hangs": "import time; time.sleep(60)\n    yield",
        "prints": "print('loud')\n    yield context.finding('WARN', 'so so')",
        "nothing": "return\n    yield",
        "no-finding": "yield 'text'",
        "no-verdict": "yield context.finding('MAYBE', 'x')",
    }
    gates = []
    for name, body in bodies.items():
        path = tmp_path / f"{name}.py"
        path.write_text(f"def check(context):\n    {body}\n")
        gates.append(_planned(path, name, limit=1.5 if name == "hangs" else 60))
    results = results_of(tmp_path, gates)
    assert results["well"]["measured"]["findings"] == [
        {"verdict": "PASS", "summary": "well", "measured": "cpu 7 3"}
    ]
    assert results["raises"]["error"]["type"] == "KeyError"
    assert results["hangs"]["outcome"] == "hung"
    assert results["prints"]["output"] == "loud\n"
    assert results["prints"]["measured"]["findings"][0]["verdict"] == "WARN"
    assert results["nothing"]["measured"]["findings"] == []
    assert "must yield findings" in results["no-finding"]["error"]["message"]
    assert "MAYBE" in results["no-verdict"]["error"]["message"]


def test_evidence_that_a_finding_does_not_have_is_refused() -> None:
    context: Any = importlib.import_module("suite.check_context").CheckContext("cpu", "/tmp", 1, 1)
    with pytest.raises(TypeError, match="no colour"):
        context.failed("x", colour="red")
