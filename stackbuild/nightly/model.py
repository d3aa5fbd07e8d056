"""A night as frozen models: what the nightly job found for each stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from stackbuild.drift.model import Drift
from stackbuild.errors import ExitCode, leading_exit_code
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.frozen_model import FrozenModel
from stackbuild.reports.summary import leading_verdict

# What a night can say of a stack, worst first; one word for the page and for the exit code.
Outcome = Literal["spec-or-lock", "build-failed", "failed", "not-judged", "drift", "unchanged"]

EXIT_OF_OUTCOME: Mapping[Outcome, ExitCode] = {
    "spec-or-lock": ExitCode.SPEC_OR_LOCK,
    "build-failed": ExitCode.BUILD_FAILED,
    "failed": ExitCode.GATE_FAILED,
    "not-judged": ExitCode.NOT_JUDGED,
    "drift": ExitCode.DRIFT,
    "unchanged": ExitCode.OK,
}


class NewerVersion(FrozenModel):
    """A version within the spec's ranges that the lock does not have yet."""

    kind: Literal["python", "deb", "base", "torch", "onnxruntime"]
    name: str
    locked: str
    newer: str
    verdict: Verdict = Field(description="the judge's answer on taking it")
    reason: str = Field(default="", description="why, as a sentence")


class StackNight(FrozenModel):
    """One stack in one night, on one platform."""

    stack: str
    external: bool = Field(default=False, description="others build it: no rebuild")
    platform: str = ""
    outcome: Outcome
    findings: tuple[Finding, ...]
    complete: bool = Field(description="no gate that applies was SKIP or ERROR")
    config_digest: str = Field(default="", description="of the image rebuilt, or of the external one")
    diff_ids: tuple[str, ...] = ()
    lock_sha256: str = ""
    inputs_sha256: str = Field(
        default="",
        description="over all that decides the image: spec, lock, files, platform, stackbuild's version; two nights "
        "with the same must have the same diff IDs. Empty for an external stack",
    )
    image: str = Field(default="", description="what the engine calls the image that was judged")
    registry_digest: str = Field(default="", description="of an external stack: what its tag names")
    compared_with: str = Field(default="", description="what the image was held against; empty: nothing")
    size: int = Field(default=0, description="bytes of all layers, uncompressed; 0 when not built")
    seconds: dict[str, float] = Field(
        default_factory=dict, description="by stage: inputs, newer, rebuild, scan, verify, total"
    )
    pins: dict[str, Any] = Field(default_factory=dict, description="the pin list, as its label has it")
    newer: tuple[NewerVersion, ...] = ()
    drift: Drift | None = Field(
        default=None, description="against the image it should equal; None when equal"
    )
    change: Drift | None = Field(
        default=None, description="what a new lock changed since the last night: wanted, so no drift"
    )
    tries: int = Field(default=1, description="how often it was begun in this night")
    reports: dict[str, str] = Field(
        default_factory=dict, description="what was written → path relative to the folder of the page"
    )

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The gravest verdict of each gate."""
        codes = dict.fromkeys(finding.code for finding in self.findings)
        return {
            code: leading_verdict([finding for finding in self.findings if finding.code == code])
            for code in codes
        }


def label_of(stack: str, platform: str) -> str:
    """What a reader calls a result: the stack's name, with the platform where that must be told."""
    return f"{stack} ({platform})" if platform else stack


class Night(FrozenModel):
    """What one run of ``stackbuild nightly`` found."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    report: Literal["nightly"] = "nightly"
    id: str = Field(description="unique; begins with the UTC start, for example 20261130T021500Z-3f2a")
    started: str = Field(description="RFC 3339, UTC")
    seconds: float
    host: str = Field(default="", description="name of the machine")
    version: str = Field(description="stackbuild's own version")
    stacks: tuple[StackNight, ...]
    kept_from: tuple[str, ...] = Field(
        default=(),
        description="stacks of which infrastructure kept something from being judged, after all tries",
    )
    interrupted: bool = Field(
        default=False, description="stopped by a person; ``stacks`` are those judged till then"
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """What a reader calls each result, in their order: a stack of which there are several by its platform too."""
        results = Counter(stack.stack for stack in self.stacks)
        return tuple(
            label_of(stack.stack, stack.platform if results[stack.stack] > 1 else "") for stack in self.stacks
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all stacks."""
        return tuple(finding for stack in self.stacks for finding in stack.findings)

    @property
    def complete(self) -> bool:
        """No gate that applies was SKIP or ERROR, in any stack."""
        return is_complete(self.findings)

    @property
    def exit_code(self) -> ExitCode:
        """The one exit code for all stacks (DESIGN §5)."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return leading_exit_code(EXIT_OF_OUTCOME[stack.outcome] for stack in self.stacks)
