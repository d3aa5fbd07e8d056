"""The verification's models: what a run of the suite brought back, and the report on it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stackbuild.findings import Finding
from stackbuild.frozen_model import FrozenModel
from stackbuild.verification.promise import Promise

Outcome = Literal["measured", "raised", "crashed", "killed", "hung", "garbled", "skipped"]
# As asked for: ``auto`` takes the first that works, ``all`` repeats the run in each.
Injection = Literal["auto", "hook", "runtime", "cdi", "all"]
# As it was done.
InjectedBy = Literal["none", "hook", "runtime", "cdi", "all"]


class GateResult(FrozenModel):
    """One gate's result as the suite wrote it."""

    name: str
    outcome: Outcome
    seconds: float = 0.0
    measured: dict[str, Any] = Field(default_factory=dict)
    error: dict[str, str] = Field(
        default_factory=dict, description="type, message, traceback of what it raised"
    )
    signal_name: str = ""
    exit_code: int | None = None
    limit: float | None = Field(default=None, description="seconds it was given, when it hung")
    reason: str = Field(default="", description="why the answer could not be read")
    needs: tuple[str, ...] = Field(default=(), description="gates it needed that were not measured")
    output: str = Field(default="", description="beginning and end of what it printed")
    output_bytes: int = 0


class SuiteRun(FrozenModel):
    """All that one run of the suite brought back, wherever it ran."""

    results: dict[str, GateResult] = Field(default_factory=dict, description="by gate name")
    python: str = Field(default="", description="interpreter that ran the suite; empty when none started")
    python_too_old: str = Field(default="", description="version of an interpreter that cannot run the suite")
    finished: bool = Field(default=False, description="the suite said that it was done")
    timed_out: bool = False
    limit: float = Field(default=0, description="seconds the whole run was given")
    exit_code: int | None = None
    out_of_memory: bool = False
    tried: tuple[str, ...] = Field(default=(), description="interpreters that were tried and did not start")
    log: str = Field(default="", description="what the container printed beside the results")
    log_bytes: int = 0


class JudgedImage(FrozenModel):
    """The image that a report is bound to."""

    reference: str
    id: str = Field(description="the engine's id of the image")
    diff_ids: tuple[str, ...] = ()
    platform: str = ""


class HostBasics(FrozenModel):
    """The host that the image was judged on, as far as a verification without GPU needs it."""

    engine: str = Field(description="Docker Engine's version")
    storage_driver: str = ""
    architecture: str = ""
    kernel: str = ""


class VerificationReport(FrozenModel):
    """The result of verifying one image."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["verification"] = "verification"
    image: JudgedImage
    stack: str = ""
    promise: Promise
    promise_sha256: str
    suite_version: str
    suite_sha256: str
    host: HostBasics
    injection: InjectedBy = Field(default="none", description="how the GPUs reached the container")
    gpus: str = Field(description="the GPU selection: all, none, a number, device=…")
    started: str = Field(description="RFC 3339, UTC")
    seconds: float
    findings: tuple[Finding, ...]
    complete: bool = Field(description="no gate that applies was SKIP or ERROR")
    log: str = ""
    log_bytes: int = 0
    cached: bool = Field(default=False, description="an earlier result for exactly these inputs")

    @property
    def title(self) -> str:
        """What was judged, in one line."""
        return f"verify {self.image.reference}"

    @property
    def headline(self) -> tuple[tuple[str, str], ...]:
        """What a reader must know beside the findings."""
        promised = {
            "lock": "its lock",
            "labels": "its own labels",
            "spec": "its spec",
            "nothing": "nothing; judged on its own",
        }
        when = f"{self.started}, {self.seconds:.1f} s"
        return (
            ("image", self.image.id),
            ("promised", f"{promised[self.promise.source]} ({self.promise.device})"),
            ("GPUs", self.gpus if self.injection == "none" else f"{self.gpus}, by {self.injection}"),
            (
                "host",
                f"Docker {self.host.engine}, {self.host.architecture}, Linux {self.host.kernel}".rstrip(),
            ),
            ("judged", f"{when}, an earlier result (--fresh judges again)" if self.cached else when),
        )
