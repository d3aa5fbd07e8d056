"""Running a function in a process of its own, to see how long it takes and how much memory it needs."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
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
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: proc(5)
    before, begun = _memory("VmRSS"), time.process_time()
    try:
        value = function(*arguments)
    except StackbuildError as error:
        value = error.code
    answer.send(Measured(value, time.process_time() - begun, _memory("VmHWM") - before))


def _memory(field: str) -> int:
    """A size from proc(5); getrusage(2) would give the parent's peak, which a process starts with."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise AssertionError(field)
