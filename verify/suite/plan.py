"""The plan: which gates to run, in which worker, with which limits and options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

SCHEMA = 1


class Gate(NamedTuple):
    """One gate to run.

    ``worker`` names the process the gate is forked from; ``function`` is ``module:name``; a gate with
    ``loads`` runs in the worker itself and prepares it (imports the framework) for the gates after it.
    ``limit`` is in seconds. ``needs`` names earlier gates that must have been measured.
    """

    name: str
    worker: str
    function: str
    limit: float
    needs: Tuple[str, ...]
    loads: bool
    options: Dict[str, Any]


class Plan(NamedTuple):
    """All gates in order, folders (relative to the plan) that modules may come from, and what the run is bound to.

    ``bound`` is repeated in the stream, so that a result which is judged elsewhere says what it is of.
    """

    gates: Tuple[Gate, ...]
    paths: Tuple[str, ...]
    bound: Dict[str, Any]


def read_plan(path: Path) -> Plan:
    """Read a plan file; raises ValueError when it is of another schema."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise ValueError("this suite reads plans of schema %d, not %r" % (SCHEMA, data.get("schema")))
    gates: List[Gate] = [
        Gate(
            name=gate["name"],
            worker=gate["worker"],
            function=gate["function"],
            limit=float(gate["limit"]),
            needs=tuple(gate.get("needs", ())),
            loads=bool(gate.get("loads", False)),
            options=dict(gate.get("options", {})),
        )
        for gate in data["gates"]
    ]
    paths = tuple(str((path.parent / entry).resolve()) for entry in data.get("paths", ()))
    return Plan(gates=tuple(gates), paths=paths, bound=dict(data.get("bound", {})))
