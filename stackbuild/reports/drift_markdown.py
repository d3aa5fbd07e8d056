"""A drift as GitHub Flavored Markdown, for pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackbuild.drift.findings import layer_text
from stackbuild.drift.model import Drift, DriftVerdict
from stackbuild.reports.drift_summary import VERDICT_WORDS, file_text, outcome, owned_files, side_text
from stackbuild.reports.markdown import code_span, inline

_MOST_ROWS = 100
_LONGEST_DOCUMENT = 60_000
_MARKS: dict[DriftVerdict, str] = {"same": "✅", "change": "ℹ️", "drift": "⚠️"}


def render_drift_markdown(drift: Drift) -> str:
    """The drift as Markdown: tables of pins, packages and files by owner; bounded, JSON has all of it."""
    text = f"### {_MARKS[drift.verdict]} {VERDICT_WORDS[drift.verdict]}: {inline(drift.title)}\n\n{inline(outcome(drift))}\n\n"
    text += f"* before: {code_span(side_text(drift.before))}\n* after: {code_span(side_text(drift.after))}\n"
    left = 0
    for block in _blocks(drift):
        if len(text) + len(block) > _LONGEST_DOCUMENT:
            left += 1
        else:
            text += f"\n{block}"
    if left:
        text += f"\n{left} further parts are in the JSON report.\n"
    return text


def _blocks(drift: Drift) -> Iterator[str]:
    if drift.first_layer is not None and drift.differs:
        yield f"The first difference is in {inline(layer_text(drift.first_layer))}.\n"
    yield from _table(
        ("Pin", "Before", "After", "Breaking"),
        [(inline(pin.pin), *map(_value, pin.sides), inline(pin.why)) for pin in drift.pins],
    )
    yield from _table(
        ("Package", "Kind", "Before", "After", "What", "Breaking"),
        [
            (
                inline(item.name),
                inline(item.kind),
                _value(item.before),
                _value(item.after),
                inline(", ".join(item.what) or item.change),
                inline(item.why),
            )
            for item in drift.packages
        ],
    )
    yield from _table(
        ("Files", "Number", "For example"),
        [
            (inline(group.owner), inline(group.counts), code_span(file_text(group.examples[0])))
            for group in owned_files(drift.files, examples=1)
        ],
    )
    for head, told in (("Differs without being content", drift.metadata), ("Not known", drift.unknown)):
        if told:
            yield f"{head}:\n\n" + "".join(f"* {inline(sentence)}\n" for sentence in told[:_MOST_ROWS])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    text = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    text += "".join(f"| {' | '.join(row)} |\n" for row in rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        text += f"\nand {len(rows) - _MOST_ROWS:,} more\n"
    yield text


def _value(text: str) -> str:
    return code_span(text) if text else ""
