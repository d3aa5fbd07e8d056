"""How a verification is to be run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from stackbuild.host.model import Host
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.model import Injection


@dataclass(frozen=True)
class VerifyOptions:
    """How to verify.

    Attributes:
        gpus: GPUs to reserve.
        injection: How they reach the container; ``auto`` takes the first way that works, ``all`` repeats
            the run in each way that the engine has and compares.
        card: The inventory of the engine's host; None when it is not known.
        user: User to run as; None for the promise's, then the image's own.
        shm_size: Size of /dev/shm; None for the promise's, then the engine's default.
        read_only: Run with a read-only root file system, whatever the promise says.
        evidence: Folder for a profile of the run, which is taken only then; None for none.
        gates: Judge only these codes; empty for all. The report of a part is never complete.
        fresh: Run even when there is a result for exactly these inputs.
        limit: Seconds for the whole run.
    """

    gpus: GpuSelection = field(default_factory=GpuSelection)
    injection: Injection = "auto"
    card: Host | None = None
    user: str | None = None
    shm_size: str | None = None
    read_only: bool = False
    evidence: Path | None = None
    gates: tuple[str, ...] = ()
    fresh: bool = False
    limit: float = 900.0
