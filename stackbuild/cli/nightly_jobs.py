"""A night of several stacks at a time, a process each."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from stackbuild.cli.processes import Task, run_processes
from stackbuild.errors import ExitCode, NotJudgedError, SpecError
from stackbuild.nightly.clean_store import owned_folder
from stackbuild.nightly.model import Night, StackNight
from stackbuild.nightly.night import assembled, not_begun, result_of_error
from stackbuild.nightly.rounds import disk_is_full, run_rounds
from stackbuild.progress import Observer
from stackbuild.spec.load import load_spec, name_taken
from stackbuild.store.shared_outages import OUTAGES, SharedOutages


def night_in_processes(
    specs: Sequence[Path],
    jobs: int,
    arguments: Sequence[str],
    *,
    id_: str,
    started: datetime,
    retries: int,
    pause: float,
    area: Path,
    observer: Observer,
) -> Night:
    """Judge each stack by a night of its own in a process of its own, and put them together.

    Args:
        specs: Paths of the specs.
        jobs: Processes at a time.
        arguments: Options of each of these nights; they write their result to stdout and remember nothing.
        id_: The night's id.
        started: When it began, UTC.
        retries: How often what infrastructure kept from being judged is tried again, at the end.
        pause: Seconds to wait before that.
        area: Where the processes' common folder is made: what one of them finds down all leave alone, and what
            a registry told one it has told all.
        observer: Told of the waits.
    """
    began = time.monotonic()
    interrupted = False
    run = _Run(jobs)
    run.results.update(_named_twice(specs))
    try:
        with owned_folder(area) as folder:
            outages = folder / OUTAGES
            outages.touch()
            run.arguments = (*arguments, "--shared", str(folder))
            run.kept_from = run_rounds(
                [path for path in specs if path not in run.results],
                run.round,
                results=run.results,
                retries=retries,
                pause=pause,
                outages=SharedOutages(outages),
                observer=observer,
            )
    except KeyboardInterrupt:
        interrupted = True
    if not interrupted:
        for path in specs:
            run.results.setdefault(path, (result_of_error(not_begun(), path.stem),))
    stacks = [stack for path in specs for stack in run.results.get(path, ())]
    return assembled(
        stacks,
        id_=id_,
        started=started,
        seconds=time.monotonic() - began,
        kept_from=run.kept_from,
        interrupted=interrupted,
    )


def _named_twice(specs: Sequence[Path]) -> dict[Path, tuple[StackNight, ...]]:
    """What is said of specs whose stack is called as an earlier one: the processes do not know of each other."""
    names: dict[str, Path] = {}
    found: dict[Path, tuple[StackNight, ...]] = {}
    for path in specs:
        try:
            stack = load_spec(path)
        except SpecError:  # its own process tells
            continue
        other = names.setdefault(stack.spec.name, path)
        if other != path:
            found[path] = (result_of_error(name_taken(stack, other), path.stem),)
    return found


@dataclass
class _Run:
    """The processes of one night.

    Attributes:
        jobs: How many at a time.
        arguments: Of each.
        results: What is judged so far, by path.
        kept_from: Stacks that infrastructure kept from being judged to the end.
    """

    jobs: int
    arguments: tuple[str, ...] = ()
    results: dict[Path, tuple[StackNight, ...]] = field(default_factory=dict)
    kept_from: Sequence[Path] = ()

    def round(self, stacks: Sequence[Path]) -> Sequence[Path]:
        """Judge these stacks; returns those that infrastructure kept from being judged."""
        paths = {
            Task(path.stem, ("nightly", str(path), "--format", "json", *self.arguments)): path
            for path in stacks
        }
        kept_from: set[Path] = set()

        def done(task: Task, result: str, code: int) -> None:
            path = paths[task]
            stacks, again = _judged(task.name, result, code)
            tries = 1 + max((earlier.tries for earlier in self.results.get(path, ())), default=0)
            if stacks:
                self.results[path] = tuple(stack.model_copy(update={"tries": tries}) for stack in stacks)
            if again:
                kept_from.add(path)

        run_processes(list(paths), self.jobs, done, stop=lambda: disk_is_full(self.results))
        return [path for path in stacks if path in kept_from]


def _judged(name: str, result: str, code: int) -> tuple[tuple[StackNight, ...], bool]:
    """What a process judged, nothing when it was interrupted before; and whether infrastructure kept it from more."""
    try:
        night = Night.model_validate_json(result)
    except ValidationError:
        if code in (ExitCode.INTERRUPTED, -signal.SIGINT):
            return (), False
        error = NotJudgedError(
            f"The process that judged it ended without a result (exit code {code}).",
            code="judging-ended",
            do="Judge it alone (without --jobs) and read what it says; memory may not do for so many at a time.",
        )
        return (result_of_error(error, name),), True
    return night.stacks, bool(night.kept_from)
