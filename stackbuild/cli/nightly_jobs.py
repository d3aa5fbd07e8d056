"""A night of several stacks at a time, a process each."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from stackbuild.cli.processes import Task, run_processes
from stackbuild.errors import ExitCode, NotJudgedError
from stackbuild.nightly.model import Night, StackNight
from stackbuild.nightly.night import assembled, not_begun, result_of_error
from stackbuild.nightly.notes import DISK_FULL


def night_in_processes(
    specs: Sequence[Path], jobs: int, arguments: Sequence[str], *, id_: str, started: datetime
) -> Night:
    """Judge each stack by a night of its own in a process of its own, and put them together.

    Args:
        specs: Paths of the specs.
        jobs: Processes at a time.
        arguments: Options of each of these nights; they write their result to stdout and remember nothing.
        id_: The night's id.
        started: When it began, UTC.
    """
    began = time.monotonic()
    tasks = [Task(path.stem, ("nightly", str(path), "--format", "json", *arguments)) for path in specs]
    results: dict[Task, tuple[StackNight, ...]] = {}

    def done(task: Task, result: str, code: int) -> None:
        results[task] = _stacks(task.name, result, code)

    def full() -> bool:
        found = [
            finding for stacks in list(results.values()) for stack in stacks for finding in stack.findings
        ]
        return any(finding.code == DISK_FULL for finding in found)

    interrupted = False
    try:
        run_processes(tasks, jobs, done, stop=full)
    except KeyboardInterrupt:
        interrupted = True
    if not interrupted:
        for task in tasks:
            results.setdefault(task, (result_of_error(not_begun(), task.name),))
    stacks = [stack for task in tasks for stack in results.get(task, ())]
    return assembled(
        stacks, id_=id_, started=started, seconds=time.monotonic() - began, interrupted=interrupted
    )


def _stacks(name: str, result: str, code: int) -> tuple[StackNight, ...]:
    """What a process judged; nothing when it was interrupted before."""
    try:
        return Night.model_validate_json(result).stacks
    except ValidationError:
        if code in (ExitCode.INTERRUPTED, -signal.SIGINT):
            return ()
        error = NotJudgedError(
            f"The process that judged it ended without a result (exit code {code}).",
            code="judging-ended",
            do="Judge it alone (without --jobs) and read what it says; memory may not do for so many at a time.",
        )
        return (result_of_error(error, name),)
