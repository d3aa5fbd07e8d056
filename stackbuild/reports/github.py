"""Findings as GitHub workflow commands, which annotate the line of the spec they are about.

Format: GitHub Actions documentation, "Workflow commands", ``::error file=…,line=…,title=…::message``.
"""

from __future__ import annotations

from collections.abc import Iterable

from stackbuild.findings import Finding, Verdict
from stackbuild.reports.safe_text import safe_line

_LEVELS = {Verdict.FAIL: "error", Verdict.ERROR: "error", Verdict.WARN: "warning"}


def annotation(finding: Finding, *, file: str = "", line: int = 1, column: int = 1, about: str = "") -> str:
    """One workflow command, or nothing for a verdict that needs no attention.

    Args:
        finding: What to say.
        file: The file, relative to the repository; empty when it is about none.
        line: Line, from 1.
        column: Column, from 1.
        about: The host it was judged on; empty for the stack itself.
    """
    level = _LEVELS.get(finding.verdict)
    if level is None:
        return ""
    where = f" [{about}]" if about else ""
    message = safe_line(f"{finding.summary}{where}")
    if finding.next_step:
        message += f"\n{safe_line(finding.next_step)}"
    place = f"file={_property(file)},line={line},col={column}," if file else ""
    return f"::{level} {place}title={_property(finding.code)}::{_message(message)}"


def lines(annotations: Iterable[str]) -> str:
    """The commands that say something, each once, a line each."""
    return "".join(f"{text}\n" for text in dict.fromkeys(annotations) if text)


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(safe_line(text)).replace(":", "%3A").replace(",", "%2C")
