"""The state of one stack, read from its nights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.history.history import History
from stackbuild.nightly.history.model import NightSummary, Series, TrendPoint
from stackbuild.nightly.model import EXIT_OF_OUTCOME, StackNight
from stackbuild.nightly.page.changes import Change, in_runs
from stackbuild.nightly.page.places import label, page_name
from stackbuild.nightly.page.values import duration, size
from stackbuild.nightly.report import reasons_of
from stackbuild.reports.summary import GRAVEST_FIRST

_GRAVEST_OUTCOMES = tuple(EXIT_OF_OUTCOME)
_MOST_CHANGES = 20
_MOST_TROUBLE = 10
_MOST_PAST = 14  # as many nights as keep their reports


@dataclass(frozen=True)
class Trouble:
    """A night that did not end well, and the finding that says why."""

    point: TrendPoint
    finding: Finding | None


@dataclass(frozen=True)
class StackState:
    """One stack on one platform.

    Attributes:
        series: Which.
        points: Its nights, newest first.
        last: The newest in full.
        nights: All nights of the history, newest first.
        changes: The newest drifts and new locks.
        older_changes: How many more there are.
        trouble: The newest nights that did not end well.
        past: The newest nights with the reports of each, name → path.
    """

    series: Series
    points: tuple[TrendPoint, ...]
    last: StackNight
    nights: Sequence[NightSummary]
    changes: tuple[Change, ...]
    older_changes: int
    trouble: tuple[Trouble, ...]
    past: tuple[tuple[TrendPoint, Mapping[str, str]], ...]

    @property
    def label(self) -> str:
        """What a reader calls it."""
        return label(self.series)

    @property
    def page(self) -> str:
        """File name of its page."""
        return page_name(self.series)

    @property
    def newest(self) -> TrendPoint:
        """Its newest night."""
        return self.points[0]

    @property
    def in_last_night(self) -> bool:
        """Whether the newest night of all has it."""
        return bool(self.nights) and self.newest.number == self.nights[0].number

    @cached_property
    def nights_in_state(self) -> int:
        """For how many of its nights in a row, the newest included, outcome and completeness have been the same."""
        state = (self.newest.outcome, self.newest.complete)
        same = (
            number
            for number, point in enumerate(self.points)
            if (point.outcome, point.complete) != state
        )  # fmt: skip
        return next(same, len(self.points))

    @property
    def reason(self) -> str:
        """Why the newest night is not ``unchanged``, as a sentence; empty when it is."""
        return next((finding.summary for finding in reasons_of(self.last)), "")

    @property
    def next_step(self) -> str:
        """What to do about it; empty where nothing is to be done."""
        return next((finding.next_step for finding in reasons_of(self.last) if finding.next_step), "")

    @property
    def since(self) -> TrendPoint:
        """The first night of the present state."""
        return self.points[self.nights_in_state - 1]

    @cached_property
    def last_good(self) -> TrendPoint | None:
        """The newest night whose outcome was ``unchanged``."""
        return next((point for point in self.points if point.outcome == "unchanged"), None)

    @property
    def rank(self) -> tuple[bool, int, bool, str]:
        """What orders stacks: what needs attention first; those that the last night does not have come last."""
        gravity = _GRAVEST_OUTCOMES.index(self.newest.outcome)
        return (not self.in_last_night, gravity, self.newest.complete, self.label.lower())

    @cached_property
    def built(self) -> TrendPoint | None:
        """The newest night with an image."""
        return next((point for point in self.points if point.size), None)

    @property
    def size(self) -> str:
        """Size of the newest image."""
        return size(self.built.size if self.built else 0)

    @cached_property
    def stage(self) -> str:
        """The stage whose time is shown: ``rebuild``, or ``total`` of a stack that is never built."""
        return "rebuild" if any("rebuild" in point.seconds for point in self.points) else "total"

    @property
    def seconds(self) -> float:
        """The newest time of that stage; 0 when there is none."""
        return next((found for point in self.points if (found := point.seconds.get(self.stage, 0))), 0.0)

    @property
    def build_time(self) -> str:
        """The same for people."""
        return duration(self.seconds)

    @property
    def attention(self) -> list[Finding]:
        """The last night's findings that a reader should look at, the gravest first."""
        return sorted(
            (
                finding
                for finding in self.last.findings
                if finding.verdict is not Verdict.PASS and (finding.verdict is not Verdict.SKIP or finding.applies)
            ),
            key=lambda finding: GRAVEST_FIRST.index(finding.verdict),
        )  # fmt: skip

    @property
    def idle(self) -> list[Finding]:
        """The last night's gates that had nothing to judge."""
        return [finding for finding in self.last.findings if not finding.applies]


def gravest(point: TrendPoint) -> Verdict | None:
    """The gravest verdict of a night's gates; None when no gate was judged."""
    present = set(point.verdicts.values())
    return next((verdict for verdict in GRAVEST_FIRST if verdict in present), None)


def has_change(point: TrendPoint) -> bool:
    """Whether a night changed the stack; a lock that could not be honoured changed nothing."""
    return point.drifted or (point.changed and point.outcome != "spec-or-lock")


def state_of(
    history: History, series: Series, nights: Sequence[NightSummary], limit: int
) -> StackState | None:
    """Read a stack's state; None when none of the nights has it.

    Args:
        history: Where from.
        series: The stack and its platform.
        nights: The newest nights of the history.
        limit: How many of its nights to read.
    """
    points = history.stack_trend(series.stack, limit, platform=series.platform)
    if not points:
        return None
    changed = [point for point in points if has_change(point)]
    troubled = [point for point in points if point.outcome != "unchanged"][:_MOST_TROUBLE]
    results = _Results(history, series)
    last = results.of(points[0])
    if last is None:
        return None
    found = []
    for point in changed[:_MOST_CHANGES]:
        result = results.of(point)
        for kind, drift in (("drift", result and result.drift), ("change", result and result.change)):
            if drift:
                found.append((point, kind, drift))
    return StackState(
        series=series,
        points=points,
        last=last,
        nights=nights,
        changes=in_runs(found),
        older_changes=max(0, len(changed) - _MOST_CHANGES),
        trouble=tuple(Trouble(point, _cause(results.of(point))) for point in troubled),
        past=tuple(
            zip(points, history.reports(series.stack, _MOST_PAST, platform=series.platform), strict=False)
        ),
    )


@dataclass(frozen=True)
class _Results:
    """The results of a stack's nights, each read once."""

    history: History
    series: Series
    known: dict[str, StackNight | None] = field(default_factory=dict)

    def of(self, point: TrendPoint) -> StackNight | None:
        """The whole result of a point."""
        if point.night not in self.known:
            found = self.history.result(self.series.stack, point.night, platform=self.series.platform)
            self.known[point.night] = found
        return self.known[point.night]


def _cause(result: StackNight | None) -> Finding | None:
    """The finding that a night's outcome comes from; the first of several."""
    return next(iter(reasons_of(result)), None) if result is not None else None
