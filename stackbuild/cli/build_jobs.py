"""Building several stacks at a time, a process each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stackbuild.cli.processes import Task, run_processes
from stackbuild.errors import ExitCode


def build_in_processes(
    specs: Sequence[Path], jobs: int, *, quiet: bool, **asked: Any
) -> list[dict[str, Any]]:
    """Build stacks in processes of their own and return their rows in the order of the specs.

    Args:
        specs: Paths of the specs.
        jobs: Processes at a time.
        quiet: As the option.
        asked: The command's other options, by parameter.
    """
    flags = _flags(quiet=quiet, **asked)
    tasks = [Task(path.stem, ("build", str(path), "--format", "json", *flags)) for path in specs]
    rows: dict[Task, dict[str, Any]] = {}

    def done(task: Task, result: str, code: int) -> None:
        rows[task] = _row(task.name, result, code)

    run_processes(tasks, jobs, done)
    return [rows[task] for task in tasks]


def _row(name: str, result: str, code: int) -> dict[str, Any]:
    if result:
        rows: list[dict[str, Any]] = json.loads(result)["stacks"]
        return rows[0]
    return {"stack": name, "error": f"exit code {code}", "exit-code": _known(code)}


def _known(code: int) -> int:
    # Without a result, 0 and 1 are not a build's word; nor is a signal, as the kernel's when memory runs out.
    return code if code in set(ExitCode) - {ExitCode.OK, ExitCode.GATE_FAILED} else int(ExitCode.NOT_JUDGED)


def _flags(*, quiet: bool, **asked: Any) -> list[str]:
    switches: Mapping[str, Any] = {
        "--verify": asked["verify"],
        "--locked": asked["locked"],
        "--no-cache": asked["fresh"],
        "--strict": asked["strict"],
        "-v": asked["verbose"],
        "-q": quiet,
    }
    flags = [flag for flag, on in switches.items() if on]
    flags += ["--builder", asked["builder"], "--reports", str(asked["reports"])]
    return flags + (["--gpus", asked["gpus"]] if asked["gpus"] else [])
