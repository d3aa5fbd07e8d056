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


def test_what_was_not_judged_is_told_in_short_and_with_its_stacks() -> None:
    gates = [Finding(code=f"gate-{number}", verdict=Verdict.SKIP, summary="no GPU") for number in range(9)]
    quick = Finding(code="rebuild-reproduces", verdict=Verdict.SKIP, summary="not rebuilt: a quick night")
    stacks = [
        _stack("a", "unchanged", *gates),
        _stack("b", "unchanged", SAME),
        _stack("c", "unchanged", quick),
        *(_stack(f"d{number}", "unchanged", *gates) for number in range(5)),
    ]
    last = render_night(night(*stacks), colour=False).splitlines()[-1]
    assert last.partition("; ")[2] == (
        "not complete: gate-0, gate-1, gate-2 and 6 more not judged in a, d0, d1, d2 and 2 more; "
        "rebuild-reproduces not judged in c"
    )
    last = render_night(night(*stacks), colour=False, verbose=True).splitlines()[-1]
    assert ", ".join(gate.code for gate in gates) in last, "a person who asks hears all"


def test_an_image_that_moved_is_told_whatever_the_outcome_is() -> None:
    moved = MOVED.model_copy(update={"code": "external-moved", "summary": "its tag is another image now"})
    told = "WARN external-moved: its tag is another image now"
    for verbose in (False, True):
        shown = render_night(night(_stack("s", "not-judged", moved, DOWN)), colour=False, verbose=verbose)
        assert shown.count(told) == 1
    assert told not in render_night(night(_stack("s", "drift", moved)), colour=False)


@pytest.mark.parametrize(
    ("what", "summary"),
    [
        ("the lock is not valid", "The lock is not valid."),
        ("a-1.0.whl has 2 bytes; was it edited by hand?", "a-1.0.whl has 2 bytes; was it edited by hand?"),
    ],
)
def test_an_error_becomes_a_sentence_and_names_stay_as_they_are_written(what: str, summary: str) -> None:
    assert finding_of_error(LockError(what, code="lock-invalid"), subject="a").summary == summary


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
