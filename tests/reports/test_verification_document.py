"""The document of a verification: parts, stack and plots; and its stack in every format."""

from __future__ import annotations

from typing import Any

import pytest

from stackbuild.reports.console import render_console
from stackbuild.reports.document import StackRow
from stackbuild.reports.formats import render_document
from stackbuild.reports.json_report import render_json
from stackbuild.reports.verification import document_of_verification, stack_rows
from stackbuild.verification.frozen_stack import FrozenStack
from stackbuild.verification.model import HostBasics, JudgedImage, MeasuredGate, VerificationReport
from tests.reports.documents import UNKNOWN, WELL, WRONG
from tests.verification.support import cpu_promise


def _report(**changes: Any) -> VerificationReport:
    fields: dict[str, Any] = {
        "image": JudgedImage(reference="torch-cpu:latest", id="sha256:" + "1" * 64),
        "promise": cpu_promise(must_match={"kernel": "6.8.0"}),
        "promise_sha256": "2" * 64,
        "suite_version": "1",
        "suite_sha256": "3" * 64,
        "host": HostBasics(engine="20.10.24"),
        "gpus": "none",
        "started": "2026-11-30T12:00:00Z",
        "seconds": 3.21,
        "findings": (WELL, WRONG),
        "complete": True,
        "frozen_stack": FrozenStack(kernel="6.1.0", frameworks={"torch": "2.13.0+cpu"}),
        "gates": (
            MeasuredGate(
                name="torch-memory", outcome="measured", seconds=1.5, memory={"weight": 2**30, "cache": 0}
            ),
            MeasuredGate(name="ort-session", outcome="hung", seconds=120.0),
        ),
    }
    return VerificationReport(**{**fields, **changes})


def test_gates_are_bars_of_time_and_memory() -> None:
    times, memory = document_of_verification(_report()).plots
    assert [(bar.label, bar.value, bar.note) for bar in times.bars] == [
        ("torch-memory", 1.5, ""),
        ("ort-session", 120.0, "hung"),
    ]
    assert [(bar.label, bar.value) for bar in memory.bars] == [("torch-memory: weight", 2**30)]


def test_the_stack_names_what_nobody_knows_and_what_must_match() -> None:
    rows = stack_rows(_report())
    assert StackRow("kernel", "6.1.0", "6.8.0") in rows
    assert StackRow("frameworks", "torch 2.13.0+cpu") in rows
    assert StackRow("driver", "unknown") in rows
    assert stack_rows(_report(frozen_stack=None)) == ()


@pytest.mark.parametrize("format_", ["junit", "markdown", "html", "json", "table"])
def test_every_format_shows_the_stack(format_: str) -> None:
    report = _report()
    if format_ == "json":
        text = render_json(report)
    elif format_ == "table":
        text = render_console(report, colour=False, stack=stack_rows(report))
        assert "  kernel              6.1.0 (must be 6.8.0)\n" in text
    else:
        text = render_document(document_of_verification(report), format_)
    assert "6.1.0" in text
    assert "6.8.0" in text or format_ == "junit"
    assert "2.13.0+cpu" in text


def test_each_way_of_injection_is_a_part() -> None:
    found = [
        finding.model_copy(update={"details": {"injection": mode}})
        for mode in ("hook", "cdi")
        for finding in (WELL, UNKNOWN)
    ]
    document = document_of_verification(_report(injection="all", findings=(WRONG, *found)))
    assert [(part.name, len(part.findings)) for part in document.parts] == [
        ("all modes", 1),
        ("hook", 2),
        ("cdi", 2),
    ]
    assert len(document_of_verification(_report(findings=tuple(found))).parts) == 1
