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


# What the catalog recognises beside these is the Dockerfile's or its inputs' fault: the build failed.
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
    for known in recognise(lines, Facts()):
        row = known.signature
        if row.stage != "build":
            continue  # a step's own program may print anything; only what a build can meet names its failure
        fault = _BY_CODE.get(row.code)
        if fault is None:
            return BuildError(row.cause, code=row.code, where=step, detail=detail, do=row.next_step)
        return fault.error(row.cause, code=fault.code, where=step, detail=detail, do=row.next_step)
    return BuildError(
        "A step of the Dockerfile failed.",
        code="build-step-failed",
        where=step,
        detail=detail,
        do="Its last lines are above; -v shows the whole build.",
    )
