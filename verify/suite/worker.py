"""A worker: loads a framework once, then forks a process for every gate that uses it.

The fork gives each gate a process of its own without paying for the import again; a gate that
crashes or is killed leaves the worker as it was. Only gates marked ``loads`` run in the worker itself, and only
a framework whose import starts no threads of its own and no CUDA context may be loaded so: neither
survives a fork.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List

WORKER_FLAG = "--worker"
# The kernel's range is -1000..1000; the highest makes a gate the first to go when memory runs out.
OOM_FIRST = "1000"


def serve(channel: int, paths: List[str]) -> int:
    """Run the requests that come as JSON lines on standard input until it closes.

    Args:
        channel: File descriptor for the answers ``{"started": PID}`` and ``{"ended": STATUS}``.
        paths: Further folders to import gates from.
    """
    sys.path.extend(paths)
    with os.fdopen(channel, "w", buffering=1) as answers:
        for line in sys.stdin:
            request = json.loads(line)
            if request["loads"]:
                _measure(request)
                status = 0
            else:
                pid = os.fork()
                if pid == 0:
                    _gate_process(request, channel)
                answers.write(json.dumps({"started": pid}) + "\n")
                status = os.waitpid(pid, 0)[1]
            sys.stdout.flush()
            answers.write(json.dumps({"ended": status}) + "\n")
    return 0


def _gate_process(request: Dict[str, Any], channel: int) -> None:
    """The forked process: measure, flush and leave without running the worker's exit handlers."""
    status = 1
    try:
        os.setsid()
        os.close(channel)
        # Standard input is the worker's request pipe; a gate that reads it would eat the next request.
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        _volunteer_for_oom()
        _measure(request)
        sys.stdout.flush()
        sys.stderr.flush()
        status = 0
    finally:
        os._exit(status)


def _volunteer_for_oom() -> None:
    try:
        Path("/proc/self/oom_score_adj").write_text(OOM_FIRST, encoding="ascii")
    except OSError:
        # Without /proc, or where it is read-only, the kernel chooses by itself; the result is the same finding.
        return


def _measure(request: Dict[str, Any]) -> None:
    """Call the gate's function and leave its answer at the path the request names, whole or not at all."""
    try:
        answer: Dict[str, Any] = {"measured": _function(request["function"])(request["options"])}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a framework raises is the measurement
        answer = {
            "raised": {
                "type": type(error).__name__,
                "message": str(error)[:4000],
                "traceback": traceback.format_exc()[-6000:],
            }
        }
    target = Path(request["answer"])
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(answer, default=repr), encoding="ascii")
    partial.replace(target)


def _function(name: str) -> Callable[[Dict[str, Any]], Dict[str, Any]]:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
