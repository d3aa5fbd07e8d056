"""The jobs of a pipeline as frozen models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stackbuild.frozen_model import FrozenModel
from stackbuild.spec.model import Platform


class Runner(FrozenModel):
    """The machine that a job needs."""

    kind: str = Field(
        description="key of the site file's [runners]: cpu or sm_NN, with -arm64 behind it there"
    )
    labels: tuple[str, ...] = Field(
        description="labels that a runner must have; empty: any of the service's own"
    )
    mapped: bool = Field(default=False, description="the site file says which; else they are the default")


class BuildJob(FrozenModel):
    """Build and stage a stack for one platform, on a machine without a GPU."""

    id: str = Field(description="unique in the pipeline, of letters, digits, dots, hyphens and underscores")
    platform: Platform
    runner: Runner


class JudgeJob(FrozenModel):
    """Run the verification where one of the required reports can come from."""

    id: str
    platform: Platform
    requires: str = Field(description="what its report is for: a compute capability (sm_90), or cpu")
    gpus: tuple[str, ...] = Field(
        default=(), description="products of that compute capability, as the spec names them"
    )
    runner: Runner


class PromoteJob(FrozenModel):
    """Move the tags once every required report is there."""

    id: str
    require: str = Field(description="for publish --require: sm_80,sm_90 or cpu")
    runner: Runner


class StackJobs(FrozenModel):
    """All jobs of one stack; an external stack, which others build, is only judged."""

    stack: str
    path: str = Field(description="of the spec, for the command line")
    external: str = Field(default="", description="reference of an external stack's image")
    changed: tuple[str, ...] = Field(
        default=(), description="changed files that it reads, relative to the repository's root"
    )
    build: tuple[BuildJob, ...] = ()
    judge: tuple[JudgeJob, ...] = ()
    promote: PromoteJob | None = None


class Since(FrozenModel):
    """What the working tree was compared with."""

    revision: str = Field(description="as it was named")
    commit: str = Field(description="the newest commit that both it and HEAD have")


class JobMatrix(FrozenModel):
    """What ``stackbuild matrix`` answers."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    report: Literal["matrix"] = "matrix"
    since: Since | None = Field(default=None, description="None: all that were named, changed or not")
    stacks: tuple[StackJobs, ...]
    removed: tuple[str, ...] = Field(default=(), description="stacks whose spec is gone; they have no jobs")

    @property
    def build(self) -> tuple[tuple[StackJobs, BuildJob], ...]:
        """Every build job with its stack."""
        return tuple((stack, job) for stack in self.stacks for job in stack.build)

    @property
    def judge(self) -> tuple[tuple[StackJobs, JudgeJob], ...]:
        """Every judge job with its stack."""
        return tuple((stack, job) for stack in self.stacks for job in stack.judge)

    @property
    def promote(self) -> tuple[tuple[StackJobs, PromoteJob], ...]:
        """Every promote job with its stack."""
        return tuple((stack, stack.promote) for stack in self.stacks if stack.promote is not None)
