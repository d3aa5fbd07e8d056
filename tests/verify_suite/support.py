"""Runs the suite's source folder as a real process, as an image would run the archive."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SUITE = Path(__file__).parents[2] / "verify"
HERE = Path(__file__).parent
MARK = "@stackbuild@ "


def tiny(name: str, function: str | None = None, **fields: Any) -> dict[str, Any]:
    """A planned gate from ``tiny_gates.py``."""
    return {
        "name": name,
        "worker": "tiny",
        "function": f"tiny_gates:{function or name}",
        "limit": 60,
        **fields,
    }


def events_of(
    folder: Path, gates: list[dict[str, Any]], *, program: Path = SUITE, limit: float = 300
) -> list[dict[str, Any]]:
    """All events of a run of these gates."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"schema": 1, "gates": gates, "paths": [str(HERE)]}))
    done = subprocess.run(
        [sys.executable, "-B", str(program), str(plan), str(folder / "results")],
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(line.startswith(MARK) for line in lines), done.stdout[:2000]
    return [json.loads(line[len(MARK) :]) for line in lines]


def results_of(folder: Path, gates: list[dict[str, Any]], **options: Any) -> dict[str, dict[str, Any]]:
    """Results by gate name."""
    events = events_of(folder, gates, **options)
    assert events[-1] == {"event": "end", "gates": len(gates)}
    return {event["name"]: event for event in events if event["event"] == "gate"}
