"""Progress on stderr: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stackbuild.cli.output import plain, talk
from stackbuild.progress import Observer, SilentObserver
from stackbuild.sizes import size_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# In plain text one thing's progress is told at most this often, so that logs stay short.
_SECONDS_BETWEEN_LINES = 10.0


class PlainObserver:
    """One line per stage and note, and now and then one for a long transfer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, int]] = {}

    def stage(self, name: str, detail: str = "") -> None:
        """Tell that a stage began."""
        talk(f"{name}: {detail}" if detail else name)

    def advance(self, name: str, done: int, total: int | None, unit: str = "bytes") -> None:
        """Tell how far a long one is."""
        with self._lock:
            now = time.monotonic()
            since, before = self._told.get(name, (now, 0))
            if done < before:
                since = now  # the same file once more, for another stack: not a long one yet
            told = now - since >= _SECONDS_BETWEEN_LINES
            self._told[name] = (now if told else since, done)
            if total is not None and done >= total:
                del self._told[name]
        if not told:
            return
        talk(f"{name}: {amount(done, unit)}" + (f" of {amount(total, unit)}" if total else ""))

    def note(self, message: str) -> None:
        """Tell a sentence."""
        talk(message)


class BarObserver:
    """Bars for what moves, lines for the rest."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}

    def stage(self, name: str, detail: str = "") -> None:
        """Tell that a stage began."""
        self._progress.console.print(f"{name} {detail}".rstrip(), highlight=False, markup=False)

    def advance(self, name: str, done: int, total: int | None, unit: str = "bytes") -> None:
        """Move the thing's bar; it goes when the thing is done."""
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(name, total=total)
            task = self._tasks[name]
            amounts = amount(done, unit) + (f" of {amount(total, unit)}" if total else "")
            self._progress.update(task, completed=done, total=total, description=f"{name}  {amounts}")
            if total is not None and done >= total:
                self._progress.remove_task(self._tasks.pop(name))

    def note(self, message: str) -> None:
        """Tell a sentence."""
        self._progress.console.print(message, highlight=False, markup=False)


def amount(count: int, unit: str) -> str:
    """``count`` with its unit, bytes as 1.5 GB."""
    return size_text(count) if unit == "bytes" else f"{count} {unit}"


@contextmanager
def observed(*, quiet: bool = False) -> Iterator[Observer]:
    """An observer that shows progress on stderr while the block runs.

    Args:
        quiet: Show nothing.
    """
    if quiet:
        yield SilentObserver()
    elif plain():
        yield PlainObserver()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            yield BarObserver(progress)
