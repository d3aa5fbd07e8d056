"""A drift for a person at a terminal; plain text where colour is not wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackbuild.drift.findings import change_text, layer_text
from stackbuild.drift.model import Drift, PackageChange, PinChange
from stackbuild.reports.drift_summary import (
    NOBODY,
    VERDICT_WORDS,
    file_text,
    outcome,
    owned_files,
    side_text,
)
from stackbuild.reports.safe_text import safe_text

_MOST_PACKAGES = 40
_MOST_OWNERS = 20
_MOST_UNKNOWN = 5
_LONGEST_VALUE = 100

Line = tuple[str, str]  # style and text


def render_drift(drift: Drift, *, colour: bool, width: int = 110, verbose: bool = False) -> str:
    """The drift as text.

    Args:
        drift: What to show.
        colour: Whether the reader is a terminal that wants colour; False gives plain text.
        width: Columns; plain text is not wrapped.
        verbose: Show every package and file, and what differs without being content.
    """
    lines = ((style, _one_line(text)) for style, text in _lines(drift, verbose=verbose))
    if not colour:
        return "".join(f"{text.rstrip()}\n" for _, text in lines)
    # Imported here: plain text needs none of it, and thousands of lines take thirty times as long with it.
    from rich.text import Text

    from stackbuild.reports.text_page import TextPage

    page = TextPage(colour=colour, width=width)
    for style, text in lines:
        page.console.print(Text(text, style=style))
    return page.text()


def _one_line(text: str) -> str:
    """Safe, on one line, with its columns kept."""
    return safe_text(text).replace("\n", " ").replace("\t", " ")


def _lines(drift: Drift, *, verbose: bool) -> Iterator[Line]:
    yield "bold", drift.title
    yield "none", f"  before     {side_text(drift.before)}"
    yield "none", f"  after      {side_text(drift.after)}"
    yield "none", ""
    yield from _section("pins", [_pin(pin) for pin in drift.pins], None)
    several = len({item.place for item in drift.packages if item.place}) > 1
    packages = [_package(package, placed=several or verbose) for package in drift.packages]
    yield from _section("packages", packages, None if verbose else _MOST_PACKAGES)
    yield from _files(drift, verbose=verbose)
    if drift.first_layer is not None and drift.differs:
        yield "bold", "first layer that differs"
        yield "none", f"  {layer_text(drift.first_layer)}"
        yield "none", ""
    for head, told, most in (
        ("differs without being content", drift.metadata, None),
        ("not known", drift.unknown, None if verbose else _MOST_UNKNOWN),
    ):
        yield from _section(head, [("dim", text) for text in told], most)
    yield "yellow" if drift.differs else "green", f"{VERDICT_WORDS[drift.verdict]:<7}{outcome(drift)}"


def _section(head: str, lines: Sequence[Line], most: int | None) -> Iterator[Line]:
    if not lines:
        return
    yield "bold", head
    yield from ((style, f"  {text}") for style, text in lines[:most])
    if most is not None and len(lines) > most:
        yield "dim", f"  and {len(lines) - most:,} more; -v shows them"
    yield "none", ""


def _files(drift: Drift, *, verbose: bool) -> Iterator[Line]:
    groups = owned_files(drift.files, examples=len(drift.files) if verbose else 3)
    if not groups:
        return
    yield "bold", "files"
    shown = groups if verbose else groups[:_MOST_OWNERS]
    for group in shown:
        yield "none", f"  {group.owner}: {group.counts}"
        if not (verbose or group.changed or group.owner == NOBODY):
            continue  # a package that came or went whole
        yield from (("dim", f"    {file_text(file)}") for file in group.examples)
        more = group.changed + group.added + group.removed - len(group.examples)
        if more:
            yield "dim", f"    and {more:,} more"
    if len(groups) > len(shown):
        yield "dim", f"  and those of {len(groups) - len(shown):,} more packages; -v shows them"
    yield "none", ""


def _pin(pin: PinChange) -> Line:
    before, after = (_value(value) for value in pin.sides)
    return _told(f"{pin.pin}: {before} → {after}", pin.why)


def _package(package: PackageChange, *, placed: bool) -> Line:
    where = f" in {package.place}" if package.place and placed else ""
    what = f" [{', '.join(package.what)}]" if package.what not in ((), ("version",)) else ""
    whole = f"{package.after or package.before} {package.change}"
    text = change_text(package) if package.change == "changed" else whole
    return _told(f"{package.kind} {package.name} {text}{what}{where}", package.why)


def _told(text: str, why: str) -> Line:
    return ("yellow", f"{text}  !! {why}") if why else ("none", text)


def _value(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
