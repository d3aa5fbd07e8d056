"""What a report must offer to be written in any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stackbuild.findings import Finding


class Report(Protocol):
    """A report over findings; a pydantic model that says what it is about."""

    @property
    def title(self) -> str:
        """One line: what was judged."""

    @property
    def headline(self) -> Sequence[tuple[str, str]]:
        """Name and value of what a reader must know beside the findings."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, in order."""

    @property
    def complete(self) -> bool:
        """True when no gate that applies was SKIP or ERROR."""

    def model_dump_json(self, *, indent: int, by_alias: bool) -> str:
        """Everything, as JSON."""
