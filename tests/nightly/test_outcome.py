"""What findings and errors mean for a night."""

from __future__ import annotations

import pytest

from stackbuild.errors import (
    BuildError,
    ExitCode,
    LockError,
    NotJudgedError,
    ScanError,
    SpecError,
    StackbuildError,
    UsageError,
)
from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.model import EXIT_OF_OUTCOME, Outcome
from stackbuild.nightly.outcome import finding_of_error, outcome_of_error, outcome_of_inputs, worst_outcome


def finding(verdict: str, code: str = "inputs-served") -> Finding:
    return Finding(code=code, verdict=Verdict(verdict), summary="x")


@pytest.mark.parametrize(
    ("findings", "outcome", "exit_code"),
    [
        ([], "unchanged", 0),
        ([finding("PASS")], "unchanged", 0),
        ([finding("WARN", "deb-superseded")], "unchanged", 0),
        ([finding("SKIP", "inputs-unplaced")], "unchanged", 0),
        ([finding("WARN", "base-tag-moved")], "drift", 6),
        ([finding("WARN", "base-tag-moved"), finding("ERROR", "index-unreachable")], "not-judged", 5),
        ([finding("ERROR", "index-unreachable"), finding("FAIL", "wheel-yanked")], "spec-or-lock", 3),
    ],
)
def test_inputs(findings: list[Finding], outcome: Outcome, exit_code: int) -> None:
    assert outcome_of_inputs(findings) == outcome
    assert EXIT_OF_OUTCOME[outcome] is ExitCode(exit_code)


@pytest.mark.parametrize(
    ("error", "outcome", "verdict"),
    [
        (LockError("x", code="deb-superseded"), "spec-or-lock", "FAIL"),
        (SpecError("x"), "spec-or-lock", "FAIL"),
        (UsageError("x", code="site-config-invalid"), "spec-or-lock", "FAIL"),
        (UsageError("x", code="output-unwritable"), "not-judged", "ERROR"),
        (UsageError("x", code="source-date-epoch-invalid"), "not-judged", "ERROR"),
        (LockError("x", code="index-invalid"), "not-judged", "ERROR"),
        (LockError("x", code="registry-failed"), "not-judged", "ERROR"),
        (BuildError("x", code="disk-full"), "build-failed", "FAIL"),
        (NotJudgedError("x", code="engine-died"), "not-judged", "ERROR"),
        (ScanError("x", code="layer-unreadable"), "not-judged", "ERROR"),
    ],
)
def test_errors(error: StackbuildError, outcome: Outcome, verdict: str) -> None:
    assert outcome_of_error(error) == outcome
    assert finding_of_error(error, subject="s").verdict == verdict


def test_the_worst_wins_in_the_order_of_the_exit_codes() -> None:
    assert worst_outcome(["drift", "failed", "not-judged"]) == "failed"
    assert worst_outcome(["not-judged", "drift"]) == "not-judged"
    assert worst_outcome([]) == "unchanged"


def test_an_error_keeps_its_words() -> None:
    error = LockError(
        "the index has it no more", code="wheel-not-found", where="here", do="Do.", detail="why"
    )
    made = finding_of_error(error, subject="numpy", details={"index": "default"})
    assert made.summary == "The index has it no more (here)."
    assert (made.code, made.measured, made.next_step, made.details) == (
        "wheel-not-found",
        "why",
        "Do.",
        {"index": "default"},
    )
