"""The console and JSON reports over one verification."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.reports.console import render_console
from stackbuild.reports.document import StackRow
from stackbuild.reports.github import annotation
from stackbuild.reports.json_report import render_json
from stackbuild.verification.model import HostBasics, JudgedImage, VerificationReport
from tests.reports.documents import ATTACK
from tests.support.json_schemas import violations
from tests.support.report_schemas import committed_schema, report_schema
from tests.verification.support import cpu_promise

WELL = Finding(code="torch-matmul", verdict=Verdict.PASS, summary="within tolerance", measured="fp32 4.0e-07")
WRONG = Finding(
    code="ort-version",
    verdict=Verdict.FAIL,
    summary="onnxruntime is 1.31.1, promised is 1.30.0",
    measured="1.31.1",
    required="1.30.0",
    next_step="Build again from the lock.",
    details={"log_lines": ["[W:onnxruntime] a line"]},
)
IDLE = Finding(
    code="mixed-cuda-majors", verdict=Verdict.SKIP, summary="no CUDA wheels are installed", applies=False
)


def _skip(code: str) -> Finding:
    return Finding(code=code, verdict=Verdict.SKIP, summary="not judged: it needs a GPU")


def _report(*findings: Finding, **changes: Any) -> VerificationReport:
    fields: dict[str, Any] = {
        "image": JudgedImage(reference="torch-cpu:latest", id="sha256:" + "1" * 64, platform="linux/amd64"),
        "stack": "torch-cpu",
        "promise": cpu_promise(),
        "promise_sha256": "2" * 64,
        "suite_version": "1",
        "suite_sha256": "3" * 64,
        "host": HostBasics(engine="20.10.24", architecture="x86_64", kernel="6.1"),
        "gpus": "none",
        "started": "2026-11-30T12:00:00Z",
        "seconds": 3.21,
        "findings": findings,
        "complete": is_complete(findings),
    }
    return VerificationReport(**{**fields, **changes})


def test_plain_text_tells_verdict_evidence_and_next_step_without_control_characters() -> None:
    text = render_console(_report(WELL, WRONG, IDLE), colour=False)
    assert text == (
        "verify torch-cpu:latest\n"
        f"  image      sha256:{'1' * 64}\n"
        "  promised   its lock (cpu)\n"
        "  GPUs       none\n"
        "  host       Docker 20.10.24, x86_64, Linux 6.1\n"
        "  judged     2026-11-30T12:00:00Z, 3.2 s\n"
        "\n"
        "PASS   torch-matmul  within tolerance\n"
        "FAIL   ort-version   onnxruntime is 1.31.1, promised is 1.30.0\n"
        "       measured: 1.31.1\n"
        "       required: 1.30.0\n"
        "       | [W:onnxruntime] a line\n"
        "       -> Build again from the lock.\n"
        "\n"
        "FAIL  1 failed, 1 passed\n"
        "complete: true\n"
        "1 gate has nothing to judge here (-v lists them)\n"
    )


def test_a_terminal_gets_colour_and_its_own_width() -> None:
    text = render_console(_report(WELL, WRONG), colour=True, width=60)
    assert "\x1b[" in text
    assert "FAIL" in text


def test_text_of_an_image_is_never_read_as_markup() -> None:
    finding = WRONG.model_copy(update={"summary": "[bold]raised[/bold] [link=x]"})
    assert "[bold]raised[/bold] [link=x]" in render_console(_report(finding), colour=False)


def test_what_was_not_judged_is_listed_and_repeated_reasons_are_told_once() -> None:
    report = _report(WELL, _skip("ort-session"), _skip("ort-silent-cpu-fallback"))
    text = render_console(report, colour=False)
    assert "complete: false; not judged: ort-session, ort-silent-cpu-fallback\n" in text
    assert text.count("it needs a GPU") == 1
    assert "it needs a GPU (and 1 more)" in text
    assert render_console(report, colour=False, verbose=True).count("it needs a GPU") == 2


def test_of_very_much_that_was_not_judged_the_first_is_listed_and_the_rest_counted() -> None:
    report = _report(*(_skip(f"gate-{number}") for number in range(40)))
    told = next(line for line in render_console(report, colour=False).splitlines() if "complete:" in line)
    assert told.startswith("complete: false; not judged: gate-0, gate-1, ")
    assert told.endswith("gate-11 and 28 more (-v lists them)")
    told = render_console(report, colour=False, verbose=True).splitlines()[-1]
    assert told.endswith("gate-38, gate-39")


def test_verbose_shows_measurements_of_what_passed_and_idle_gates() -> None:
    text = render_console(_report(WELL, IDLE), colour=False, verbose=True)
    assert "measured: fp32 4.0e-07" in text
    assert "no CUDA wheels are installed" in text


def test_an_earlier_result_says_so() -> None:
    assert "an earlier result (--fresh judges again)" in render_console(
        _report(WELL, cached=True), colour=False
    )


def test_json_is_the_whole_report_and_keeps_to_its_schema() -> None:
    report = _report(WELL, WRONG, IDLE)
    document = json.loads(render_json(report))
    assert violations(document, json.loads(committed_schema())) == []
    assert document["schema"] == 1
    assert document["kind"] == "verification"
    assert [finding["code"] for finding in document["findings"]] == [
        "torch-matmul",
        "ort-version",
        "mixed-cuda-majors",
    ]
    assert VerificationReport.model_validate(document) == report


def test_the_committed_schema_is_current() -> None:
    assert committed_schema() == report_schema(VerificationReport)


@pytest.mark.parametrize("broken", [{"complete": "yes"}, {"unknown": 1}, {"findings": [{"code": "X"}]}])
def test_the_schema_refuses_other_documents(broken: dict[str, Any]) -> None:
    document = {**json.loads(render_json(_report(WELL))), **broken}
    assert violations(document, json.loads(committed_schema()))


def test_text_of_an_image_cannot_act_on_a_terminal_or_a_workflow() -> None:
    changes = {
        "summary": ATTACK,
        "subject": ATTACK,
        "measured": ATTACK,
        "waived": ATTACK,
        "next_step": ATTACK,
    }
    finding = WRONG.model_copy(update={**changes, "details": {"traceback": ATTACK, "log_lines": [ATTACK]}})
    report = _report(finding, image=JudgedImage(reference=ATTACK, id=ATTACK))
    stack = [StackRow("kernel", ATTACK, ATTACK)]
    told = {
        "table": render_console(report, colour=False, verbose=True, stack=stack),
        "terminal": re.sub(r"\x1b\[[0-9;]*m", "", render_console(report, colour=True, width=80)),
        "github": annotation(finding, file=ATTACK, about=ATTACK),
    }
    for format_, text in told.items():
        assert not [char for char in text if ord(char) < 0x20 and char != "\n"], format_
        assert not [char for char in text if 0x7F <= ord(char) <= 0x9F or char in "\u202e\ud800"], format_
        text.encode("utf-8")
    assert "\n" not in told["github"], "nothing begins a second command"
    assert told["github"].startswith("::error file=")
    assert "\\x1b[31mred\\x1b[0m" in told["table"]


def test_megabytes_of_a_log_do_not_fill_the_terminal() -> None:
    flood = WRONG.model_copy(update={"details": {"output": "\n".join(f"line {n}" for n in range(500_000))}})
    text = render_console(_report(flood), colour=False)
    assert len(text.splitlines()) < 40
    assert "| line 499999" in text
