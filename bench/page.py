"""Time, memory and sizes of a year of 200 stacks: adding to the history, writing the page, and opening it.

Run: python -m bench.page
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import tempfile
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path

from stackbuild.nightly.history.history import History
from stackbuild.nightly.page.write import write_page
from tests.nightly.year import year
from tests.support.browser import laid_out
from tests.support.measured import measured

STACKS, NIGHTS = 200, 365
NOW = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)
MARK = 4.0  # times reading the same rows and writing them as JSON
LARGEST_INDEX = 1_500_000  # bytes
LOAD_RUNS = 5


def fill(path: Path) -> None:
    """Add the nights, and say how long that and the questions of a night take."""
    took = []
    with History(path) as history:
        for night in year(STACKS, NIGHTS):
            began = time.perf_counter()
            history.add(night)
            took.append(time.perf_counter() - began)
        print(f"add: median {statistics.median(took) * 1000:.0f} ms a night of {STACKS} stacks", end="")
    print(f"; {STACKS} x {NIGHTS}: {path.stat().st_size / 1e6:.0f} MB")
    with History(path) as history:
        began = time.perf_counter()
        for stack in history.stacks():
            history.last(stack, good=True)
        print(f"last good night: {(time.perf_counter() - began) / STACKS * 1000:.2f} ms a stack")
        began = time.perf_counter()
        points = sum(len(history.stack_trend(stack)) for stack in history.stacks())
        print(f"trends: {points} points in {time.perf_counter() - began:.2f} s")


def dump(path: Path, folder: Path) -> None:
    """The peer: the rows of every table as they are, as JSON."""
    folder.mkdir()
    connection = sqlite3.connect(path)
    for table in ("nights", "stacks", "images", "gates", "verdicts", "results"):
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
        (folder / f"{table}.json").write_text(json.dumps(rows))
    contents = {
        number: json.loads(zlib.decompress(body))
        for number, body in connection.execute("SELECT id, body FROM contents")
    }
    (folder / "contents.json").write_text(json.dumps(contents))


def page(path: Path, folder: Path) -> None:
    """Write the page."""
    with History(path) as history:
        write_page(history, folder, now=NOW)


def loaded(document: Path) -> float:
    """Seconds until the browser has laid out a page and written it down; the quickest of some runs."""
    took = []
    for _ in range(LOAD_RUNS):
        began = time.perf_counter()
        laid_out(document)
        took.append(time.perf_counter() - began)
    return min(took)


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        measured(fill, root / "history.sqlite")
        peer = measured(dump, root / "history.sqlite", root / "dump")
        ours = measured(page, root / "history.sqlite", root / "page")
        ratio = ours.seconds / peer.seconds
        print(
            f"rows as JSON: {peer.seconds:.1f} s of processor, {peer.peak / 1e6:.0f} MB beyond the interpreter"
        )
        print(f"page: {ours.seconds:.1f} s of processor, {ours.peak / 1e6:.0f} MB beyond the interpreter")
        print(f"page / rows as JSON: {ratio:.2f} (mark: {MARK})")
        index = root / "page" / "index.html"
        size = index.stat().st_size
        all_of_it = sum(path.stat().st_size for path in (root / "page").rglob("*.html"))
        print(f"index.html: {size / 1000:.0f} kB; with the pages of the stacks {all_of_it / 1e6:.0f} MB")
        empty = root / "page" / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title>")
        nothing, full = loaded(empty), loaded(index)
        print(f"Chromium: {full:.2f} s, an empty page {nothing:.2f} s; ratio {full / nothing:.2f}")
    return int(ratio > MARK or size > LARGEST_INDEX)


if __name__ == "__main__":
    sys.exit(main())
