"""The model of a check: stacks, hosts, and one cell for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from stackbuild.findings import Finding, Verdict
from stackbuild.frozen_model import FrozenModel


@dataclass(frozen=True, slots=True)
class Cell:
    """One stack on one host; a plain class, because a fleet makes a hundred thousand of them.

    Attributes:
        stack: The stack's name.
        host: The host's name.
        verdict: The gravest verdict of its findings.
        findings: What the gates found.
        advice: What would make it run, where it does not.
        platform: For example ``linux/amd64``.
    """

    stack: str
    host: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    advice: tuple[str, ...] = ()
    platform: str = ""


class CheckedStack(FrozenModel):
    """One stack by itself."""

    stack: str
    platform: str = Field(default="", description="for example linux/amd64")
    judged_from: Literal["lock", "spec", "image"]
    path: str = Field(default="", description="the spec's file; empty for an image")
    verdict: Verdict
    findings: tuple[Finding, ...]
    oldest_driver: str | None = Field(default=None, description="the oldest driver that serves it")


class CheckReport(FrozenModel):
    """What ``stackbuild check`` answers."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    stacks: tuple[CheckedStack, ...]
    hosts: tuple[str, ...]
    cells: tuple[Cell, ...]
    complete: bool

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those of the stacks first."""
        return tuple(
            finding
            for findings in (
                *(part.findings for part in self.stacks),
                *(cell.findings for cell in self.cells),
            )
            for finding in findings
        )


def check_report(
    stacks: Sequence[CheckedStack], hosts: Sequence[str], cells: Sequence[Cell], *, complete: bool
) -> CheckReport:
    """The report over checked stacks and cells.

    Args:
        stacks: The stacks by themselves.
        hosts: The hosts' names.
        cells: Each stack on each host.
        complete: Whether every gate that applies was judged, in all of them.
    """
    return CheckReport.model_construct(
        schema_=1, stacks=tuple(stacks), hosts=tuple(hosts), cells=tuple(cells), complete=complete
    )
