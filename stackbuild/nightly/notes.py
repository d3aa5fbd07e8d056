"""What is noted of one stack while its night runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackbuild.drift.model import Drift
from stackbuild.errors import InterruptedRunError, NotJudgedError, StackbuildError
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.nightly.model import Outcome, StackNight
from stackbuild.nightly.outcome import finding_of_error, outcome_of_error, worst_outcome
from stackbuild.progress import Observer
from stackbuild.reports.drift_markdown import render_drift_markdown
from stackbuild.spec.model import Platform
from stackbuild.store.disk import disk_full_as_error

DISK_FULL = "disk-full"
# What a second try in the same night cannot change.
_LASTING = frozenset(
    {DISK_FULL, "image-missing", "foreign-architecture", "mmdebstrap-missing", "bootstrap-not-permitted"}
)


@dataclass
class Notes:
    """Findings, outcomes and times of one stack, stage by stage.

    Attributes:
        stack: Its name.
        observer: Told of each stage.
        strict: A WARN of a gate fails.
        findings: So far.
        outcomes: What each stage stands for.
        seconds: By stage.
        found: Further fields of ``StackNight``.
        documents: Reports, by file name.
        infrastructure: Something outside the stack kept a stage from being judged: trying again may help.
        others: The same of the stack's further platforms.
    """

    stack: str
    observer: Observer
    strict: bool = False
    findings: list[Finding] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, bytes] = field(default_factory=dict)
    infrastructure: bool = False
    others: list[Notes] = field(default_factory=list)

    @property
    def all(self) -> tuple[Notes, ...]:
        """These, and those of the stack's further platforms."""
        return (self, *self.others)

    def further(self, platform: Platform) -> Notes:
        """Begin notes of a further platform of the same stack."""
        notes = Notes(self.stack, self.observer, self.strict)
        notes.found["platform"] = platform
        self.others.append(notes)
        return notes

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; what it fails with becomes a finding, and the block ends there.

        Args:
            name: As in ``StackNight.seconds``.

        Raises:
            InterruptedRunError: The person stopped the run.
        """
        if name not in self.seconds:
            self.observer.stage(name, self.stack)
        began = time.monotonic()
        try:
            with disk_full_as_error(Path(self.stack)):
                yield
        except InterruptedRunError:
            raise
        except StackbuildError as error:
            self.ended_by(error, name)
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - began, 3)

    def ended_by(self, error: StackbuildError, subject: str) -> None:
        """Note what ended a stage."""
        self.findings.append(finding_of_error(error, subject=subject))
        self.outcomes.append(outcome_of_error(error))
        if isinstance(error, NotJudgedError) and error.code not in _LASTING:
            self.infrastructure = True

    def asked(self, findings: Iterable[Finding], outcome: Outcome) -> None:
        """Note what came of asking for inputs: an ERROR there is infrastructure."""
        noted = list(findings)
        self.findings += noted
        self.outcomes.append(outcome)
        if any(finding.verdict is Verdict.ERROR for finding in noted):
            self.infrastructure = True

    def judged(self, findings: Iterable[Finding]) -> None:
        """Note what gates answered of the image, each answer once."""
        known = {(finding.code, finding.summary) for finding in self.findings}
        noted = [finding for finding in findings if (finding.code, finding.summary) not in known]
        self.findings += noted
        verdicts = {finding.verdict for finding in noted}
        if Verdict.FAIL in verdicts or (self.strict and Verdict.WARN in verdicts):
            self.outcomes.append("failed")
        if Verdict.ERROR in verdicts:
            self.outcomes.append("not-judged")

    def drifted(self, drift: Drift) -> None:
        """Note that the image is not what it should be, and what differs."""
        self.findings += drift.findings
        self.found["drift"] = drift
        self.documents["drift.md"] = render_drift_markdown(drift).encode()
        self.outcomes.append("drift")

    def changed(self, change: Drift) -> None:
        """Note what is another than the last night, and may be: its inputs are, or a person wants it."""
        change = change.model_copy(update={"wanted": True})
        self.found["change"] = change
        self.documents["change.md"] = render_drift_markdown(change).encode()

    def night(self) -> StackNight:
        """All of it as the stack's result."""
        return StackNight(
            stack=self.stack,
            outcome=worst_outcome(self.outcomes),
            findings=tuple(self.findings),
            complete=is_complete(self.findings),
            seconds=self.seconds,
            **self.found,
        )
