"""Why a step of a classic build failed: recognised by the failure catalog, with whose fault it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.engine.translate import disk_full, is_disk_full
from stackbuild.errors import BuildError, LockError, NotJudgedError, StackbuildError
from stackbuild.explain.recognise import recognise
from stackbuild.facts.tables import Facts


@dataclass(frozen=True)
class _Fault:
    """Whose fault a failure is, by the error and so the exit code that it has wherever it is met."""

    code: str
    error: type[StackbuildError]


# Those that stackbuild itself meets; what the catalog recognises beside them comes after them, and is the fault of the
# Dockerfile or its inputs: the build failed.
_FAULTS = (
    _Fault("artifact-changed", LockError),
    _Fault("deb-superseded", LockError),
    _Fault("digest-platform-mismatch", LockError),
    _Fault("no-such-tag", LockError),
    _Fault("tag-removed", LockError),
    _Fault("certificate-not-trusted", NotJudgedError),
    _Fault("index-unreachable", NotJudgedError),
    _Fault("registry-rate-limited", NotJudgedError),
    _Fault("needs-buildkit", BuildError),
    _Fault("wheel-not-found", BuildError),
)
_BY_CODE = {fault.code: fault for fault in _FAULTS}


def build_failure(lines: Sequence[str], step: str, detail: str) -> StackbuildError:
    """The error for a build that failed.

    Args:
        lines: Output of the failed step, oldest first, and the engine's message.
        step: The step, as the engine names it.
        detail: What to show of the output.
    """
    if any(is_disk_full(line) for line in lines):
        return disk_full(step, detail)
    # A step's own program may print anything; only what a build can meet names its failure.
    rows = [known.signature for known in recognise(lines, Facts()) if known.signature.stage == "build"]
    for row in rows:
        fault = _BY_CODE.get(row.code)
        if fault is not None:
            return fault.error(row.cause, code=fault.code, where=step, detail=detail, do=row.next_step)
    if rows:
        return BuildError(rows[0].cause, code=rows[0].code, where=step, detail=detail, do=rows[0].next_step)
    return BuildError(
        "A step of the Dockerfile failed.",
        code="build-step-failed",
        where=step,
        detail=detail,
        do="Its last lines are above; -v shows the whole build.",
    )
