"""Command line of the suite."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List

from suite import VERSION
from suite.plan import read_plan
from suite.runner import run_plan
from suite.service_client import SERVICE_FLAG, ask
from suite.stream import EventStream
from suite.worker import WORKER_FLAG, serve


def main(arguments: List[str]) -> int:
    """``PLAN RESULTS`` runs a plan; ``--service PLAN`` asks a service beside it.

    ``--worker FD [PATH…]`` is how the runner starts its workers.
    """
    if arguments and arguments[0] == WORKER_FLAG:
        return serve(int(arguments[1]), arguments[2:])
    if arguments and arguments[0] == SERVICE_FLAG:
        EventStream().write(
            {"event": "gate", "name": "service", "outcome": "measured", "measured": ask(Path(arguments[1]))}
        )
        return 0
    if len(arguments) != 2:
        sys.stderr.write("usage: python suite.pyz PLAN RESULTS\n")
        return 2
    plan = read_plan(Path(arguments[0]))
    results = Path(arguments[1])
    results.mkdir(parents=True, exist_ok=True)
    events = EventStream()
    python = "%d.%d.%d" % sys.version_info[:3]
    events.write({"event": "suite", "version": VERSION, "python": python, "bound": plan.bound})
    run_plan(plan, results, events)
    events.write({"event": "end", "gates": len(plan.gates)})
    return 0
