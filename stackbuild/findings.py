"""What gates answer: verdicts, findings and reports (DESIGN §2).

Every gate, static, scan or runtime, answers in this one model; reports are written from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from stackbuild.errors import ExitCode


class Verdict(StrEnum):
    """A gate's verdict."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    WARN = "WARN"
    FAIL = "FAIL"  # the spec or the image is wrong
    ERROR = "ERROR"  # could not be judged: host or infrastructure
    SKIP = "SKIP"  # does not apply or is pointless here; the summary says why


class Finding(BaseModel):
    """A gate's answer: code, verdict, evidence (measured against required) and next step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="stable kebab-case gate code")
    verdict: Verdict
    summary: str = Field(description="one sentence for a person")
    subject: str = Field(default="", description="what was judged: a package, library, file or device")
    measured: str = ""
    required: str = ""
    next_step: str = ""
    details: dict[str, Any] = Field(default_factory=dict, description="machine-readable evidence")
    waived: str = Field(default="", description="reason and owner of the waiver that made this a WARN")
    applies: bool = Field(
        default=True,
        description="False on a SKIP where there is nothing to judge; such a SKIP keeps a report complete",
    )


def is_complete(findings: Iterable[Finding]) -> bool:
    """True when no gate that applies was SKIP or ERROR; publishing needs it (DESIGN §2)."""
    return not any(
        finding.verdict is Verdict.ERROR or (finding.verdict is Verdict.SKIP and finding.applies)
        for finding in findings
    )


def exit_code_of(findings: Iterable[Finding], *, strict: bool = False) -> ExitCode:
    """The exit code the findings stand for: any FAIL is 1, else any ERROR is 5, else 0.

    Args:
        findings: The findings of one or more reports.
        strict: When true a WARN counts as a FAIL.
    """
    verdicts = {finding.verdict for finding in findings}
    if Verdict.FAIL in verdicts or (strict and Verdict.WARN in verdicts):
        return ExitCode.GATE_FAILED
    if Verdict.ERROR in verdicts:
        return ExitCode.NOT_JUDGED
    return ExitCode.OK
