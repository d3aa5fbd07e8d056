"""What a person sees of a night, and what other formats get."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stackbuild.errors import LockError
from stackbuild.findings import Finding, Verdict
from stackbuild.gates.pages import gate_pages
from stackbuild.nightly.model import Night, Outcome, StackNight
from stackbuild.nightly.outcome import finding_of_error
from stackbuild.nightly.report import document_of_night, headline_of, reasons_of, render_night
from stackbuild.reports.formats import render_document
from tests.nightly.nights import DRIFT, night, result
from tests.support.report_schemas import committed_schema, report_schema

SAME = Finding(
    code="rebuild-reproduces", verdict=Verdict.PASS, summary="rebuilt from nothing: the same as before"
)
DIFFERS = Finding(
    code="rebuild-reproduces",
    verdict=Verdict.FAIL,
    summary="the rebuild differs from the night before: layer 7 (other wheels)",
    next_step="Read drift.md.",
)
LABELS = Finding(
    code="rebuild-reproduces",
    verdict=Verdict.WARN,
    summary="the same content as the night before; beside it: its labels",
)
MOVED = Finding(code="base-tag-moved", verdict=Verdict.WARN, summary="the base's tag moved")
GONE = Finding(code="deb-superseded", verdict=Verdict.FAIL, summary="libfoo is gone", next_step="Lock again.")
DOWN = Finding(
    code="index-unreachable", verdict=Verdict.ERROR, summary="the index is down", next_step="Wait."
)
OLD = Finding(code="distribution-eol", verdict=Verdict.WARN, summary="debian 12 is past its end")


def _stack(name: str, outcome: Outcome, *findings: Finding, **fields: Any) -> StackNight:
    return result(name, outcome=outcome, findings=findings, newer=(), **fields)


@pytest.mark.parametrize(
    ("stack", "headline"),
    [
        (_stack("s", "unchanged", SAME, OLD), "rebuilt from nothing: the same as before"),
        (
            _stack("s", "drift", MOVED, DIFFERS, OLD),
            "the rebuild differs from the night before: layer 7 (other wheels) (and 1 more)",
        ),
        (_stack("s", "spec-or-lock", OLD, GONE, DOWN), "libfoo is gone"),
        (_stack("s", "not-judged", OLD, DOWN), "the index is down"),
        (_stack("s", "failed", OLD), "debian 12 is past its end"),
        (
            _stack("s", "unchanged", SAME, change=DRIFT),
            "no drift: as its new inputs make it: cuda 12.6 → 13.0, numpy 2.1.0 → 2.1.1, libfoo 1.2-3 added",
        ),
        (
            _stack("s", "unchanged", LABELS, change=DRIFT),
            "no drift: the same content as the night before; beside it: its labels",
        ),
        (_stack("s", "unchanged", OLD), "the same as the image of the last good night"),
        (
            _stack("s", "unchanged", compared_with="", external=True),
            "first night: nothing to compare with",
        ),
    ],
)
def test_one_line_says_what_happened(stack: StackNight, headline: str) -> None:
    assert headline_of(stack) == headline


def test_a_table_has_a_line_for_each_stack_and_what_to_do() -> None:
    shown = render_night(
        night(_stack("good", "unchanged", SAME, OLD), _stack("moved-one", "drift", DIFFERS, drift=DRIFT)),
        colour=False,
    )
    lines = shown.splitlines()
    assert lines[0] == "nightly 2025-12-01T02:15:00Z"
    assert (
        " ".join(lines[2].split())
        == "unchanged good rebuilt from nothing: the same as before 60 s [rebuild-reproduces]"
    )
    assert lines[3].startswith("drift         moved-one  the rebuild differs")
    assert lines[4].strip() == "-> Read drift.md."
    assert lines[-1] == "1 drift, 1 unchanged in 600 s (exit 6)"
    assert lines[3].endswith("60 s  [rebuild-reproduces]")
    assert "distribution-eol" not in shown
    assert "WARN distribution-eol" in render_night(
        night(_stack("good", "unchanged", SAME, OLD)), colour=False, verbose=True
    )


def test_every_line_ends_with_a_code_that_can_be_explained() -> None:
    stacks = (_stack("a", "not-judged", DOWN), _stack("b", "unchanged", OLD), _stack("c", "unchanged", SAME))
    shown = render_night(night(*stacks), colour=False).splitlines()
    codes = [line.rpartition("[")[2].rstrip("]") for line in shown if line.endswith("]")]
    assert codes == ["index-unreachable", "unchanged", "rebuild-reproduces"]
    assert set(codes) <= set(gate_pages())


def test_what_an_error_says_beyond_its_sentence_is_shown() -> None:
    error = LockError("the lock is not valid", code="lock-invalid", detail="wheels.0.sha256: Field required")
    found = finding_of_error(error, subject="a")
    shown = render_night(night(_stack("a", "spec-or-lock", found)), colour=False)
    assert shown.count("wheels.0.sha256: Field required") == 1
    long = found.model_copy(update={"measured": "\n".join(f"line {number}" for number in range(30))})
    shown = render_night(night(_stack("a", "spec-or-lock", long)), colour=False)
    assert "line 7\n" in shown
    assert "line 8\n" not in shown
    assert "… 22 further lines" in shown


def test_what_two_stages_met_is_told_once() -> None:
    whole = DOWN.model_copy(update={"summary": f"{DOWN.summary}. 5 wheels of it could not be checked."})
    stack = _stack("s", "not-judged", whole, DOWN, DOWN.model_copy(update={"code": "index-denied"}))
    assert [finding.summary for finding in reasons_of(stack)] == [whole.summary, DOWN.summary]
    assert headline_of(stack).endswith("(and 1 more)")


def test_what_was_not_judged_is_told_beside_the_outcome() -> None:
    quick = Finding(code="rebuild-reproduces", verdict=Verdict.SKIP, summary="not rebuilt: a quick night")
    shown = render_night(night(_stack("good", "unchanged", quick)), colour=False)
    assert shown.splitlines()[-1] == (
        "1 unchanged in 600 s (exit 0); not complete: rebuild-reproduces not judged"
    )


def test_reports_are_named_from_where_the_reader_is() -> None:
    stack = _stack("s", "drift", DIFFERS, reports={"drift.md": "../kept/n/s/drift.md"})
    shown = render_night(night(stack), colour=False, verbose=True, folder=Path("out/page"))
    assert "drift.md: out/kept/n/s/drift.md" in shown


@pytest.mark.parametrize(
    ("outcomes", "head"),
    [
        (("unchanged", "unchanged"), "### ✅ unchanged: nightly"),
        (("unchanged", "drift"), "### ⚠️ drift: nightly"),
        (("not-judged", "drift"), "### ❗ not-judged: nightly"),
        (("spec-or-lock", "failed"), "### ❌ spec-or-lock: nightly"),
    ],
)
def test_pages_are_headed_by_the_outcome_of_the_night(outcomes: tuple[Outcome, ...], head: str) -> None:
    stacks = [_stack(f"s{number}", outcome, OLD, SAME) for number, outcome in enumerate(outcomes)]
    document = document_of_night(night(*stacks))
    assert render_document(document, "markdown").startswith(head)
    word = head.split()[2].rstrip(":")
    assert f">{word}</p>" in render_document(document, "html")


def test_an_interrupted_night_says_so() -> None:
    shown = render_night(night(_stack("good", "unchanged", SAME), interrupted=True), colour=False)
    assert "interrupted; 1 unchanged in 600 s (exit 130)" in shown
    assert not document_of_night(night(interrupted=True)).complete


def test_text_of_images_cannot_act_on_a_terminal() -> None:
    evil = SAME.model_copy(update={"summary": "\x1b[2Jgone"})
    assert "\x1b" not in render_night(night(_stack("s", "unchanged", evil)), colour=False)


def test_the_committed_schema_is_current() -> None:
    assert committed_schema("nightly.schema.json") == report_schema(Night)


def test_other_formats_have_a_part_for_each_stack() -> None:
    document = document_of_night(
        night(_stack("good", "unchanged", SAME), _stack("bad", "spec-or-lock", GONE, DOWN))
    )
    suites = ElementTree.fromstring(render_document(document, "junit"))
    assert [(suite.get("name"), suite.get("failures"), suite.get("errors")) for suite in suites] == [
        ("good", "0", "0"),
        ("bad", "1", "1"),
    ]
    assert [suite.get("time") for suite in suites] == ["60.000", "60.000"]
    good, bad = ({one.get("name"): one.get("value") for one in suite.iter("property")} for suite in suites)
    assert good["outcome"] == "unchanged: rebuilt from nothing: the same as before [rebuild-reproduces]"
    assert bad["outcome"] == "spec-or-lock: libfoo is gone [deb-superseded]"
    assert (good["complete"], bad["complete"]) == ("true", "false")
    assert {"good", "bad"}.isdisjoint(good | bad)
    for format_ in ("markdown", "html"):
        text = render_document(document, format_)
        assert "libfoo is gone" in text
        assert "Lock again" in text
