"""Runs a plan: workers side by side, each gate under its own limit, every outcome an event.

Outcomes: ``measured``; ``raised`` (an exception); ``crashed`` (a signal, or an exit without an answer);
``killed`` (SIGKILL that was not ours: most often the kernel was out of memory); ``hung`` (past its limit);
``garbled`` (an answer that cannot be read); ``skipped`` (an earlier gate it needs was not measured).
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Dict, List

from suite.plan import Gate, Plan
from suite.stream import EventStream
from suite.worker_process import WorkerProcess

MEASURED = "measured"


class Board:
    """Outcomes by gate name; a gate waits here for those it needs."""

    def __init__(self, events: EventStream) -> None:
        self._events = events
        self._outcomes: Dict[str, str] = {}
        self._changed = threading.Condition()

    def post(self, gate: Gate, result: Dict[str, Any]) -> None:
        """Record and publish a gate's result."""
        self._events.write(dict(result, event="gate", name=gate.name))
        with self._changed:
            self._outcomes[gate.name] = result["outcome"]
            self._changed.notify_all()

    def unmet(self, gate: Gate) -> List[str]:
        """Wait for the gates this one needs; return those that were not measured."""
        with self._changed:
            self._changed.wait_for(lambda: all(name in self._outcomes for name in gate.needs))
            return [name for name in gate.needs if self._outcomes[name] != MEASURED]


def run_plan(plan: Plan, results: Path, events: EventStream) -> None:
    """Run all gates of a plan and write an event for each.

    Gates of one worker run in order; workers run side by side. A plan lists a gate after those it
    needs, so that waiting cannot form a circle; a need that comes later or not at all is refused.
    """
    seen: List[str] = []
    by_worker: Dict[str, List[Gate]] = {}
    for gate in plan.gates:
        missing = [name for name in gate.needs if name not in seen]
        if missing:
            raise ValueError("gate %s needs %s, which no earlier gate is" % (gate.name, ", ".join(missing)))
        seen.append(gate.name)
        by_worker.setdefault(gate.worker, []).append(gate)

    board = Board(events)
    threads = [
        threading.Thread(target=_run_worker, args=(gates, plan, results, board, events))
        for gates in by_worker.values()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _run_worker(gates: List[Gate], plan: Plan, results: Path, board: Board, events: EventStream) -> None:
    with WorkerProcess(plan.paths, results) as worker:
        for gate in gates:
            unmet = board.unmet(gate)
            if unmet:
                board.post(gate, {"outcome": "skipped", "needs": unmet, "seconds": 0.0})
                continue
            events.write({"event": "begin", "name": gate.name})
            began = time.monotonic()
            result = worker.run(gate)
            result["seconds"] = round(time.monotonic() - began, 4)
            board.post(gate, result)
