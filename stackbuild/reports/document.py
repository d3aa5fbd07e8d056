"""What the formats for machines and pages write: a report's findings in parts, and what stands beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stackbuild.findings import Finding, Verdict
from stackbuild.reports.interface import Report
from stackbuild.reports.safe_text import shortened
from stackbuild.reports.summary import leading_verdict

if TYPE_CHECKING:
    from stackbuild.compat.report import CheckReport

# Details that are text a person wants to read; the rest is shown as JSON.
TEXT_DETAILS = ("traceback", "output", "log_lines", "engine", "log", "problems")
_LONGEST_DETAIL = 20_000


@dataclass(frozen=True)
class Part:
    """Findings of one subject: an image, a stack, or a stack on a host.

    Attributes:
        name: The subject.
        findings: What gates answered.
        advice: What to do, as sentences.
        seconds: Its own wall time; 0 where that is not known.
        told: What a reader must know of it beside the findings, as one sentence.
    """

    name: str
    findings: tuple[Finding, ...]
    advice: tuple[str, ...] = ()
    seconds: float = 0.0
    told: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar of a plot; ``value`` in the plot's unit."""

    label: str
    value: float
    note: str = ""


@dataclass(frozen=True)
class Plot:
    """Bars of one unit."""

    title: str
    unit: Literal["s", "B"]
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class StackRow:
    """One field of the frozen stack, with the value that it must have where the spec demands one."""

    name: str
    value: str
    required: str = ""


@dataclass(frozen=True)
class Document:
    """A report as pages and machines get it.

    Attributes:
        title: One line: what was judged.
        headline: Name and value of what a reader must know beside the findings.
        parts: The findings.
        complete: No gate that applies was SKIP or ERROR.
        started: RFC 3339, UTC; empty when it is not known.
        seconds: Wall time of the whole.
        stack: The frozen stack.
        plots: What was measured, as bars.
        log: What the container printed beside the results.
        log_bytes: How much it printed.
        outcome: The word for the whole, where that is another than the gravest verdict's, with the verdict that it
            is as grave as.
    """

    title: str
    headline: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    complete: bool
    started: str = ""
    seconds: float = 0.0
    stack: tuple[StackRow, ...] = ()
    plots: tuple[Plot, ...] = ()
    log: str = ""
    log_bytes: int = 0
    outcome: tuple[str, Verdict] | None = None

    @property
    def verdict(self) -> Verdict:
        """How grave the whole is."""
        return self.outcome[1] if self.outcome else leading_verdict(self.findings)

    @property
    def word(self) -> str:
        """The whole in a word."""
        return self.outcome[0] if self.outcome else self.verdict.value

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The headline, and below it that of each part."""
        return (*self.headline, *((part.name, part.told) for part in self.parts if part.told))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all parts."""
        return tuple(finding for part in self.parts for finding in part.findings)


def document_of(report: Report) -> Document:
    """The document of a report on one subject."""
    return Document(
        title=report.title,
        headline=tuple(report.headline),
        parts=(Part(report.title, report.findings),),
        complete=report.complete,
    )


def document_of_check(report: CheckReport) -> Document:
    """The document of a check: each stack by itself, then each stack on each host."""
    hosts = f" on {len(report.hosts)} hosts" if len(report.hosts) > 1 else ""
    on = ", ".join(report.hosts) if 0 < len(report.hosts) <= 5 else str(len(report.hosts))
    stacks = ", ".join(dict.fromkeys(stack.stack for stack in report.stacks))
    platforms: dict[str, set[str]] = {}
    for part in report.stacks:
        platforms.setdefault(part.stack, set()).add(part.platform)

    def named(stack: str, platform: str) -> str:
        return f"{stack} ({platform})" if len(platforms[stack]) > 1 else stack

    return Document(
        title=f"check {stacks}{hosts}",
        headline=(("stacks", stacks), *((("hosts", on),) if report.hosts else ())),
        parts=(
            *(Part(named(part.stack, part.platform), part.findings) for part in report.stacks),
            *(
                Part(f"{named(cell.stack, cell.platform)} on {cell.host}", cell.findings, cell.advice)
                for cell in report.cells
            ),
        ),
        complete=report.complete,
    )


def evidence(finding: Finding) -> Sequence[tuple[str, str]]:
    """Name and text of everything that was measured, text for people first; each of bounded size."""
    found = [
        (name, text)
        for name, text in (("measured", finding.measured), ("required", finding.required))
        if text
    ]
    rest = {}
    for name, value in finding.details.items():
        if name in TEXT_DETAILS and isinstance(value, str) and value.strip():
            found.append((name, shortened(value.rstrip(), _LONGEST_DETAIL)))
        elif name in TEXT_DETAILS and isinstance(value, list) and value:
            found.append((name, shortened("\n".join(str(item) for item in value), _LONGEST_DETAIL)))
        elif value not in ("", [], {}, None):
            rest[name] = value
    if rest:
        text = json.dumps(rest, indent=2, ensure_ascii=False, default=str)
        found.append(("details", shortened(text, _LONGEST_DETAIL)))
    return found
