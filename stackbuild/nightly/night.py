"""A night: every stack by itself, those that infrastructure kept from being judged once more, one result."""

from __future__ import annotations

import secrets
import socket
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from stackbuild import __version__
from stackbuild.errors import InterruptedRunError, NotJudgedError, StackbuildError
from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.case import Case
from stackbuild.nightly.clean_store import sweep_clean_stores
from stackbuild.nightly.external_stack import ExternalStack
from stackbuild.nightly.ground import Ground, NightOptions, stores_area
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import Night, StackNight
from stackbuild.nightly.notes import DISK_FULL, Notes
from stackbuild.nightly.own_stack import OwnStack
from stackbuild.nightly.rounds import disk_is_full, run_rounds
from stackbuild.progress import SilentObserver
from stackbuild.spec.load import load_spec, name_taken
from stackbuild.spec.platforms import platform_in_a_name
from stackbuild.store.vanished import store_vanished


def night_id(started: datetime) -> str:
    """An id that sorts by time, for example 20261130T021500Z-3f2a."""
    return f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def run_night(
    stacks: Sequence[Path],
    *,
    id_: str,
    started: datetime,
    ground: Ground,
    options: NightOptions,
    history: History,
) -> Night:
    """Judge stacks one after the other; no stack's trouble stops the others.

    Args:
        stacks: Paths of the specs.
        id_: The night's id, as :func:`night_id` makes it.
        started: When it began, UTC.
        ground: What it works with.
        options: How it is run.
        history: Earlier nights; only read.

    Returns:
        The night. When a person stopped it, it holds the stacks that were judged till then.
    """
    began = time.monotonic()
    run = _Run(ground, options, history)
    interrupted = False
    try:
        for name in sweep_clean_stores(stores_area(ground.store, options)):
            ground.observer.note(f"removed {name}, which a killed night had left")
        run.all(stacks)
    except (KeyboardInterrupt, InterruptedRunError):
        interrupted = True
    return assembled(
        [stack for stacks in run.results.values() for stack in stacks],
        id_=id_,
        started=started,
        seconds=time.monotonic() - began,
        kept_from=run.kept_from,
        interrupted=interrupted,
    )


def assembled(
    stacks: Sequence[StackNight],
    *,
    id_: str,
    started: datetime,
    seconds: float,
    kept_from: Sequence[Path],
    interrupted: bool,
) -> Night:
    """The night of these stacks, on this machine, by this stackbuild."""
    return Night(
        id=id_,
        started=started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(seconds, 3),
        host=socket.gethostname(),
        version=__version__,
        stacks=tuple(stacks),
        kept_from=tuple(path.stem for path in kept_from),
        interrupted=interrupted,
    )


def result_of_error(error: StackbuildError, stack: str) -> StackNight:
    """The result of a stack of which nothing but an error is known."""
    notes = Notes(stack, SilentObserver())
    notes.ended_by(error, stack)
    return notes.night()


@dataclass
class _Run:
    """One night under way.

    Attributes:
        ground: What it works with.
        options: How it is run.
        history: Earlier nights.
        results: What is judged so far, by path, in the order of the stacks.
        kept_from: Stacks that infrastructure kept from being judged to the end.
        names: The spec that has each name.
    """

    ground: Ground
    options: NightOptions
    history: History
    results: dict[Path, tuple[StackNight, ...]] = field(default_factory=dict)
    kept_from: Sequence[Path] = ()
    names: dict[str, Path] = field(default_factory=dict)

    def all(self, stacks: Sequence[Path]) -> None:
        """Judge all stacks, and then again those that infrastructure kept from being judged."""
        self.kept_from = run_rounds(
            stacks,
            self._round,
            results=self.results,
            retries=self.options.retries,
            pause=self.options.pause,
            outages=self.ground.outages,
            observer=self.ground.observer,
        )

    def _round(self, stacks: Sequence[Path]) -> Sequence[Path]:
        left = []
        for number, path in enumerate(stacks, start=1):
            if len(stacks) > 1:
                self.ground.observer.stage("stack", f"{path.stem}, {number} of {len(stacks)}")
            if not self._one(path):
                left.append(path)
        return left

    def _one(self, path: Path) -> bool:
        """Judge a stack; False where infrastructure kept something from being judged."""
        notes = Notes(path.stem, self.ground.observer, self.options.strict)
        began = time.monotonic()
        if disk_is_full(self.results):
            notes.ended_by(not_begun(), path.stem)
        else:
            self._run_stack(path, notes)
        tries = 1 + max((earlier.tries for earlier in self.results.get(path, ())), default=0)
        for other in notes.others:
            other.seconds["total"] = round(sum(other.seconds.values()), 3)
        of_others = sum(other.seconds["total"] for other in notes.others)
        notes.seconds["total"] = round(time.monotonic() - began - of_others, 3)
        for one in notes.all:
            one.found["tries"] = tries
        self.results[path] = tuple(one.night() for one in notes.all)
        return not any(one.infrastructure for one in notes.all)

    def _run_stack(self, path: Path, notes: Notes) -> None:
        """Judge one stack, and write its reports."""
        try:
            stack = None
            with notes.stage("spec"):
                stack = load_spec(path)
            if stack is not None:
                other = self.names.setdefault(stack.spec.name, path)
                if other != path:
                    raise name_taken(stack, other)
                notes.stack = stack.spec.name
                with self.ground.store.lock(f"nightly {notes.stack}", observer=self.ground.observer):
                    kind = ExternalStack if stack.spec.external is not None else OwnStack
                    kind(Case(stack, self.ground, self.options, self.history, notes)).run()
            for one in notes.all:
                folder = (
                    notes.stack
                    if one is notes
                    else f"{notes.stack}--{platform_in_a_name(one.found['platform'])}"
                )
                with one.stage("reports"):
                    one.found["reports"] = dict(self.ground.keep(folder, one.documents))
        except InterruptedRunError:
            raise
        except StackbuildError as error:
            notes.ended_by(error, notes.stack)
        except Exception as error:  # noqa: BLE001 - a mistake of stackbuild's in one stack is none of the others'
            used = (stores_area(self.ground.store, self.options), self.ground.store.root)
            vanished = store_vanished(error, used)
            if vanished is not None:
                notes.ended_by(vanished, notes.stack)
                return
            notes.findings.append(_mistake(error, notes.stack))
            notes.outcomes.append("not-judged")


def not_begun() -> NotJudgedError:
    """Why a stack was left out: a full disk stops what has not begun."""
    return NotJudgedError(
        "Not begun: the disk is full.",
        code=DISK_FULL,
        do="Free some space (stackbuild store evict, docker image prune), then run the night again.",
    )


def _mistake(error: Exception, stack: str) -> Finding:
    return Finding(
        code="internal-error",
        verdict=Verdict.ERROR,
        subject=stack,
        summary=f"This is a mistake in stackbuild itself: {type(error).__name__}: {error}",
        next_step="Report it with the traceback in this finding's details.",
        details={"traceback": "".join(traceback.format_exception(error))},
    )
