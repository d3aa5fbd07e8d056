"""Writes the page of nights: an index, and a page for each stack."""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from stackbuild import __version__
from stackbuild.digests import short_hex
from stackbuild.drift.findings import layer_text
from stackbuild.nightly.history.history import History
from stackbuild.nightly.history.model import NightSummary
from stackbuild.nightly.model import EXIT_OF_OUTCOME, Outcome
from stackbuild.nightly.page import values
from stackbuild.nightly.page.charts import (
    CELL_HEIGHT,
    CHART_HEIGHT,
    CHART_WIDTH,
    Sparkline,
    Strip,
    chart,
    sparkline,
    strip,
    verdict_shape,
)
from stackbuild.nightly.page.gates import counted, gates_of
from stackbuild.nightly.page.night_rows import night_rows
from stackbuild.nightly.page.places import INDEX, STACKS, report_link
from stackbuild.nightly.page.state import StackState, gravest, has_change, state_of
from stackbuild.output_file import write_file, writing
from stackbuild.reports.drift_summary import file_text
from stackbuild.reports.page_template import page_part, page_template
from stackbuild.store.disk import disk_full_as_error

_PACKAGE = "stackbuild.nightly.page"
# In the head of every page: only what bears it is ever removed.
_MARK = b'<meta name="generator" content="stackbuild nightly">'
_MARK_WITHIN = 2048  # bytes
_STRIP_NIGHTS = 30
_LEGEND = ("PASS", "WARN", "FAIL", "ERROR: could not be judged", "SKIP")
_SPARK_NIGHTS = 90
_LISTED_NIGHTS = 30


@dataclass(frozen=True)
class Row:
    """A stack in the table, drawn; only what the table shows, for hundreds of them are held at once."""

    rank: tuple[object, ...]
    label: str
    page: str
    outcome: Outcome
    complete: bool
    reason: str
    next_step: str
    newer: int
    in_last_night: bool
    nights_in_state: int
    since: str
    seen: str
    last_good: str
    digest: str
    size_bytes: int
    seconds: float
    unbuilt: bool
    change_started: str
    change_kind: str
    change_line: str
    strip: Strip
    strip_words: str
    sizes: Sparkline | None
    times: Sparkline | None


def write_page(history: History, folder: Path, *, now: datetime, nights: int = 365) -> None:
    """Write ``index.html`` and ``stacks/NAME.html`` for each stack; each file appears complete or not at all.

    A page of a stack that the history does not have any more is removed.

    Args:
        history: What is shown.
        folder: Made when missing.
        now: The time of writing, with its zone: how old the last night is.
        nights: How many nights are shown.

    Raises:
        UsageError: The folder cannot be written (``output-unwritable``).
        BuildError: The disk is full (``disk-full``).
    """
    with history.view(), disk_full_as_error(folder), writing(folder):
        summaries = history.nights(nights)
        rows, written = [], set()
        for state in _states(history, summaries, nights):
            write_file(folder / STACKS / state.page, _stack_page(state, folder))
            written.add(state.page)
            rows.append(_row(state, summaries))
        rows.sort(key=lambda row: row.rank)
        write_file(folder / INDEX, _index(rows, summaries, now))
        _remove_others(folder / STACKS, written)


def _states(history: History, nights: Sequence[NightSummary], limit: int) -> Iterator[StackState]:
    for series in history.series():
        state = state_of(history, series, nights, limit)
        if state is not None:
            yield state


def _row(state: StackState, nights: Sequence[NightSummary]) -> Row:
    by_night = {point.number: gravest(point) for point in state.points}
    verdicts = [by_night.get(summary.number) for summary in reversed(nights[:_STRIP_NIGHTS])]
    recent = state.points[:_SPARK_NIGHTS][::-1]
    change = state.changes[0] if state.changes else None
    return Row(
        rank=state.rank,
        label=state.label,
        page=state.page,
        outcome=state.newest.outcome,
        complete=state.newest.complete,
        reason=state.reason,
        next_step=state.next_step,
        newer=len(state.last.newer),
        in_last_night=state.in_last_night,
        nights_in_state=state.nights_in_state,
        since=state.since.started,
        seen=state.newest.started,
        last_good=state.last_good.started if state.last_good else "",
        digest=short_hex(state.built.config_digest) if state.built else "",
        size_bytes=state.built.size if state.built else 0,
        seconds=state.seconds,
        unbuilt=state.stage != "rebuild",
        change_started=change.last.started if change else "",
        change_kind=change.kind if change else "",
        change_line=change.line if change else "",
        strip=strip([verdict_shape(verdict) for verdict in verdicts], cell=5, gap=1),
        strip_words=counted(verdicts),
        sizes=sparkline([point.size for point in recent]),
        times=sparkline([point.seconds.get(state.stage, 0.0) for point in recent]),
    )


def _index(rows: Sequence[Row], nights: Sequence[NightSummary], now: datetime) -> bytes:
    last = nights[0] if nights else None
    outcomes: Counter[Outcome] = Counter(last.outcomes if last else {})
    worst = next((outcome for outcome in values.OUTCOME_WORDS if outcomes[outcome]), None)
    absent = [row for row in rows if not row.in_last_night]
    incomplete = sum(row.in_last_night and not row.complete for row in rows)
    return _rendered(
        "index.html.jinja",
        rows=rows,
        last=last,
        nights=night_rows(nights[:_LISTED_NIGHTS]),
        older_nights=max(0, len(nights) - _LISTED_NIGHTS),
        when=values.dates(night.started for night in nights),
        outcomes=[(outcome, outcomes[outcome]) for outcome in values.OUTCOME_WORDS if outcomes[outcome]],
        worst=worst,
        incomplete=incomplete,
        absent=_outcomes(row.outcome for row in absent),
        missing=len(absent),
        present=[outcome for outcome in values.OUTCOME_WORDS if any(row.outcome == outcome for row in rows)],
        age=values.age(last.started, now) if last else "",
        strip_nights=min(len(nights), _STRIP_NIGHTS),
        written=now.strftime("%Y-%m-%d %H:%M %Z").strip(),
        script=page_part(_PACKAGE, "index.js"),
    )  # fmt: skip


def _stack_page(state: StackState, folder: Path) -> bytes:
    oldest_first = state.points[::-1]
    marked = [has_change(point) for point in oldest_first]
    gates = gates_of(state)
    return _rendered(
        "stack.html.jinja",
        state=state,
        when=values.dates(point.started for point in state.points),
        past=[(point, int(EXIT_OF_OUTCOME[point.outcome]), _links(reports, folder)) for point, reports in state.past],
        nights=strip([values.OUTCOME_CLASSES[point.outcome] for point in oldest_first]),
        nights_words=_outcomes(point.outcome for point in state.points),
        gates=gates,
        sizes=chart([point.size for point in oldest_first], marked),
        times=chart([point.seconds.get(state.stage, 0.0) for point in oldest_first], marked),
        reports=_links(state.last.reports, folder),
        pins=[(name, values.pin(value)) for name, value in state.last.pins.items() if value not in (None, "", [], {})],
        script="",
    )  # fmt: skip


def _links(reports: Mapping[str, str], folder: Path) -> list[tuple[str, str]]:
    """The reports of a night, with links to those that are still there."""
    # A path leads up by its words, as in a link: the folder itself need not be there yet, or may be a symlink.
    return [
        (name, report_link(path, "../") if Path(os.path.normpath(folder.absolute() / path)).is_file() else "")
        for name, path in sorted(reports.items())
    ]


def _outcomes(outcomes: Iterable[Outcome]) -> str:
    """For example ``2 failed, 7 unchanged``, the worst first."""
    counted = Counter(outcomes)
    return ", ".join(
        f"{counted[outcome]} {word}" for outcome, word in values.OUTCOME_WORDS.items() if counted[outcome]
    )


def _rendered(template: str, *, script: str, **fields: object) -> bytes:
    style = page_part("stackbuild.reports", "report.css") + page_part(_PACKAGE, "page.css")
    page = page_template(_PACKAGE, template).render(
        **fields,
        style=style,
        style_hash=_policy_hash(style),
        script=script,
        script_hash=_policy_hash(script),
        values=values,
        file_text=file_text,
        layer_text=layer_text,
        legend=[(word, strip([word.split(":")[0].lower()], cell=4)) for word in _LEGEND],
        cell_height=CELL_HEIGHT,
        chart_width=CHART_WIDTH,
        chart_height=CHART_HEIGHT,
        version=__version__,
    )
    return page.encode("utf-8", "backslashreplace")


def _policy_hash(text: str) -> str:
    """A source of Content Security Policy level 3: exactly this text may be used."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _remove_others(folder: Path, written: set[str]) -> None:
    """Remove pages of stacks that are gone; what we did not write stays."""
    for path in folder.glob("*.html"):
        if path.name in written or not path.is_file():
            continue
        with path.open("rb") as stream:
            ours = _MARK in stream.read(_MARK_WITHIN)
        if ours:
            path.unlink(missing_ok=True)
