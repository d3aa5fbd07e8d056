"""What findings and errors mean for a night: the one word of ``nightly/model.py``, and so the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from stackbuild.errors import ExitCode, StackbuildError
from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.model import EXIT_OF_OUTCOME, Outcome

# An input that moved while what is locked can still be had: the lock is honoured, yet tomorrow's lock differs.
_MOVED = frozenset({"base-tag-moved", "external-moved"})
# Mistakes in how a night was called or where it runs, and an index or a registry that answers with something else,
# such as a page to log in: they say nothing of a stack.
_OF_THE_MACHINE = frozenset(
    {
        *("output-unwritable", "store-unusable", "history-unusable", "source-date-epoch-invalid"),
        *("index-invalid", "registry-failed"),
    }
)


def outcome_of_inputs(findings: Iterable[Finding]) -> Outcome:
    """What the findings of ``check_inputs`` stand for.

    A FAIL says that the lock cannot be honoured as it is: a tag or version that is gone, a changed hash, a
    superseded deb, a yanked wheel (DESIGN §5, exit 3). ERROR is infrastructure and never drift. A WARN about a
    moved tag is drift; any other finding leaves the night unchanged.
    """
    return worst_outcome(_outcome(finding) for finding in findings)


def outcome_of_error(error: StackbuildError) -> Outcome:
    """What an error that ended a stage stands for, by its own exit code."""
    if error.exit_code is ExitCode.BUILD_FAILED:
        return "build-failed"
    if error.code in _OF_THE_MACHINE:
        return "not-judged"
    if error.exit_code in (ExitCode.SPEC_OR_LOCK, ExitCode.USAGE):
        return "spec-or-lock"
    return "not-judged"


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome that stands for all; ``unchanged`` when there are none."""
    order: tuple[Outcome, ...] = get_args(Outcome)
    assert set(order) == set(EXIT_OF_OUTCOME)
    return min(outcomes, key=order.index, default="unchanged")


def finding_of_error(
    error: StackbuildError, *, subject: str, verdict: Verdict | None = None, details: Mapping[str, Any] = {}
) -> Finding:
    """An error as a finding: ERROR where nothing could be judged, else FAIL.

    Args:
        error: The error; code, words and next step are its own.
        subject: What could not be had or judged.
        verdict: A verdict of the caller's own.
        details: Further machine-readable evidence.
    """
    if verdict is None:
        verdict = Verdict.ERROR if outcome_of_error(error) == "not-judged" else Verdict.FAIL
    what = error.what.rstrip(".")
    where = f" ({error.where})" if error.where and error.where not in what else ""
    if what.partition(" ")[0].isalpha():  # else it is the name of a file or a package
        what = f"{what[:1].upper()}{what[1:]}"
    sentence = f"{what}{where}"
    return Finding(
        code=error.code,
        verdict=verdict,
        subject=subject,
        summary=sentence if sentence.endswith("?") else f"{sentence}.",
        measured=error.detail,
        next_step=error.do,
        details=dict(details),
    )


def _outcome(finding: Finding) -> Outcome:
    if finding.verdict is Verdict.FAIL:
        return "spec-or-lock"
    if finding.verdict is Verdict.ERROR:
        return "not-judged"
    if finding.verdict is Verdict.WARN and finding.code in _MOVED:
        return "drift"
    return "unchanged"
