"""Running a function in a process of its own, to see how long it takes and how much memory it needs."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from stackbuild.errors import StackbuildError


@dataclass(frozen=True)
class Measured:
    """What a function gave, and what it took.

    Attributes:
        value: What it returned; the code of the error of ours that it raised.
        seconds: Processor time, which other programs on the machine do not change much.
        peak: The largest resident set in bytes beyond that of the process before the call.
    """

    value: Any
    seconds: float
    peak: int


def measured(function: Callable[..., Any], *arguments: object) -> Measured:
    """Call a function of a module in a fresh process; value and arguments must be picklable."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, function, arguments))
    process.start()
    there.close()
    try:
        return here.recv()
    finally:
        process.join()


def _run(answer: Connection, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    before, begun = _peak(), time.process_time()
    try:
        value = function(*arguments)
    except StackbuildError as error:
        value = error.code
    answer.send(Measured(value, time.process_time() - begun, _peak() - before))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # KiB: getrusage(2)
