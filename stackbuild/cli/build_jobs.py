"""Several stacks at a time: a process each, so that one that fails or hangs takes nothing from the others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from stackbuild.cli.output import talk
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
    running: set[subprocess.Popen[str]] = set()
    guard, stopped = threading.Lock(), threading.Event()

    def build(path: Path) -> dict[str, Any]:
        command = [
            sys.executable,
            "-m",
            "stackbuild.cli.main",
            "build",
            str(path),
            "--format",
            "json",
            *flags,
        ]
        with guard:
            if stopped.is_set():
                return {"stack": path.stem, "error": "interrupted", "exit-code": int(ExitCode.INTERRUPTED)}
            # A session of its own: an interrupt reaches it once, from here.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
            )
            running.add(process)
        teller = threading.Thread(target=_tell, args=(path.stem, process), daemon=True)
        teller.start()
        result = process.stdout.read() if process.stdout else ""
        code = process.wait()
        teller.join()
        with guard:
            running.discard(process)
        return _row(path, result, code)

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(build, path) for path in specs]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            with guard:
                stopped.set()
                for process in running:
                    process.send_signal(signal.SIGINT)
            raise  # the pool waits for the processes to clean up


def _tell(name: str, process: subprocess.Popen[str]) -> None:
    for line in process.stderr or ():
        talk(f"{name}: {line.rstrip()}")


def _row(path: Path, result: str, code: int) -> dict[str, Any]:
    if result:
        rows: list[dict[str, Any]] = json.loads(result)["stacks"]
        return rows[0]
    return {"stack": path.stem, "error": f"exit code {code}", "exit-code": _known(code)}


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
