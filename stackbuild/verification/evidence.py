"""Keeps the artifacts of a run: the profiler's trace."""

from __future__ import annotations

import base64
from pathlib import Path

from stackbuild.verification.model import SuiteRun

_GATE = "torch-evidence"
_TRACE = "trace.json.gz"


def keep_evidence(run: SuiteRun, folder: Path) -> SuiteRun:
    """Write the trace to a folder, and put its path where its content was.

    Args:
        run: A run with or without evidence.
        folder: Made when it is not there. The trace opens in Perfetto and chrome://tracing.
    """
    result = run.results.get(_GATE)
    if result is None or not result.measured.get("trace"):
        return run
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _TRACE
    path.write_bytes(base64.b64decode(result.measured["trace"]))
    measured = {**result.measured, "trace": "", "trace_file": str(path)}
    kept = result.model_copy(update={"measured": measured})
    return run.model_copy(update={"results": {**run.results, _GATE: kept}})
