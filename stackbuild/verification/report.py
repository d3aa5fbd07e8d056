"""Makes the report of a run, wherever it took place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from stackbuild.findings import Finding, is_complete
from stackbuild.host.model import Host
from stackbuild.verification.freeze import freeze
from stackbuild.verification.judge.stack import judge_stack
from stackbuild.verification.model import (
    GateResult,
    HostBasics,
    InjectedBy,
    JudgedImage,
    MeasuredGate,
    Ran,
    SuiteRun,
    VerificationReport,
)
from stackbuild.verification.promise import Promise
from stackbuild.verification.selection import select_gates
from stackbuild.verification.suite_archive import suite_sha256, suite_version

_BYTES = "_bytes"


@dataclass(frozen=True)
class Circumstances:
    """Where and when a run took place.

    Attributes:
        ran: In a container here, elsewhere, or in this environment.
        host: The host, as far as engine and suite tell.
        card: Its inventory; None when it is another machine.
        injection: How GPUs reached the container.
        gpus: The GPU selection, as text.
        started: When it began; when it was judged, for one that took place elsewhere.
        seconds: What it took.
    """

    ran: Ran
    host: HostBasics
    gpus: str
    started: datetime
    seconds: float
    injection: InjectedBy = "none"
    card: Host | None = None


def verification_report(
    image: JudgedImage,
    promise: Promise,
    run: SuiteRun,
    findings: Sequence[Finding],
    circumstances: Circumstances,
    gates: tuple[str, ...] = (),
) -> VerificationReport:
    """The report of a run with its findings.

    Args:
        image: What it was of.
        promise: What it was judged against.
        run: What the suite brought back.
        findings: Of the gates.
        circumstances: Where and when.
        gates: Judge only these codes; empty for all.
    """
    host = circumstances.host
    engine = f"Docker {host.engine}" if host.engine else ""
    stack = freeze(promise, run, circumstances.card, engine)
    judged = select_gates((*findings, *judge_stack(stack, promise.must_match)), gates)
    return VerificationReport(
        image=image,
        stack=promise.stack,
        promise=promise,
        promise_sha256=promise.digest,
        suite_version=suite_version(),
        suite_sha256=suite_sha256(),
        host=host,
        injection=circumstances.injection,
        gpus=circumstances.gpus,
        started=circumstances.started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(circumstances.seconds, 3),
        findings=judged,
        complete=is_complete(judged),
        log=run.log,
        log_bytes=run.log_bytes,
        ran=circumstances.ran,
        frozen_stack=stack,
        gates=tuple(_measured(run.results.values())),
    )


def _measured(results: Iterable[GateResult]) -> Iterable[MeasuredGate]:
    """Time and memory of every gate; what a gate calls ``…_bytes`` is memory."""
    for result in results:
        memory = {
            name.removesuffix(_BYTES).replace("_", " "): value
            for name, value in result.measured.items()
            if name.endswith(_BYTES) and isinstance(value, int) and value >= 0
        }
        yield MeasuredGate(name=result.name, outcome=result.outcome, seconds=result.seconds, memory=memory)
