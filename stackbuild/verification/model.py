"""The verification's models: what a run of the suite brought back, and the report on it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from stackbuild.findings import Finding
from stackbuild.frozen_model import FrozenModel
from stackbuild.verification.frozen_stack import FrozenStack
from stackbuild.verification.promise import Promise

Outcome = Literal["measured", "raised", "crashed", "killed", "hung", "garbled", "skipped"]
# As asked for: ``auto`` takes the first that works, ``all`` repeats the run in each.
Injection = Literal["auto", "hook", "runtime", "cdi", "all"]
# Where the suite ran: in a container here, elsewhere with its output collected, in this environment.
Ran = Literal["container", "collected", "local"]
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
    id: str = Field(
        description="the engine's id of the image, or its configuration's digest; empty for an environment"
    )
    diff_ids: tuple[str, ...] = ()
    platform: str = ""


class HostBasics(FrozenModel):
    """The host that the image was judged on, as far as a verification without GPU needs it."""

    engine: str = Field(description="Docker Engine's version; empty where another engine ran it, or none")
    storage_driver: str = ""
    architecture: str = ""
    kernel: str = ""


class MeasuredGate(FrozenModel):
    """What running one gate took."""

    name: str
    outcome: Outcome
    seconds: float
    memory: dict[str, int] = Field(default_factory=dict, description="bytes, by what they were needed for")


class VerificationReport(FrozenModel):
    """The result of verifying one image, or the environment that the suite ran in."""

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
    ran: Ran = Field(
        default="container", description="where the suite ran; local is an environment, no image"
    )
    frozen_stack: FrozenStack | None = Field(default=None, description="what the verdict was measured on")
    gates: tuple[MeasuredGate, ...] = Field(
        default=(), description="every gate of the suite that has a result"
    )

    @property
    def title(self) -> str:
        """What was judged, in one line."""
        if self.ran == "local":
            return "verify this environment"
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
        return (
            self._subject(),
            ("promised", f"{promised[self.promise.source]} ({self.promise.device})"),
            ("GPUs", self.gpus if self.injection == "none" else f"{self.gpus}, by {self.injection}"),
            ("host", self._host()),
            ("judged", self._when()),
        )

    def _subject(self) -> tuple[str, str]:
        if self.ran == "local":
            return "environment", f"{self.image.reference}: an environment, not an image"
        return "image", self.image.id or self.image.reference

    def _host(self) -> str:
        engine = f"Docker {self.host.engine}" if self.host.engine else ""
        kernel = f"Linux {self.host.kernel}" if self.host.kernel else ""
        return ", ".join(part for part in (engine, self.host.architecture, kernel) if part) or "not known"

    def _when(self) -> str:
        if self.ran == "collected":
            return f"{self.started}, from the output of a run elsewhere"
        when = f"{self.started}, {self.seconds:.1f} s"
        return f"{when}, an earlier result (--fresh judges again)" if self.cached else when
