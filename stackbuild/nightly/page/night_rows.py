"""The nights as a whole, for the list on the index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.errors import ExitCode, leading_exit_code
from stackbuild.nightly.history.model import NightSummary
from stackbuild.nightly.model import EXIT_OF_OUTCOME, Outcome
from stackbuild.nightly.page.values import OUTCOME_WORDS


@dataclass(frozen=True)
class NightRow:
    """A night in the list.

    Attributes:
        night: Which.
        outcomes: How many stacks had which outcome, the worst first.
        exit_code: What the night ended with.
    """

    night: NightSummary
    outcomes: tuple[tuple[Outcome, int], ...]
    exit_code: int


def night_rows(nights: Sequence[NightSummary]) -> list[NightRow]:
    """Nights as rows, in their order.

    Args:
        nights: The nights.
    """
    return [
        NightRow(
            night=night,
            outcomes=tuple((one, night.outcomes[one]) for one in OUTCOME_WORDS if night.outcomes.get(one)),
            exit_code=int(exit_code_of(night)),
        )
        for night in nights
    ]


def exit_code_of(night: NightSummary) -> ExitCode:
    """As ``Night.exit_code``."""
    if night.interrupted:
        return ExitCode.INTERRUPTED
    return leading_exit_code(EXIT_OF_OUTCOME[outcome] for outcome, count in night.outcomes.items() if count)
