"""The jobs of one stack: where it is built, on which GPUs it is judged, what promotes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackbuild.compat.offer import target_offer
from stackbuild.compat.versions import ComputeCapability
from stackbuild.errors import SpecError
from stackbuild.facts.tables import Facts
from stackbuild.schedule.model import BuildJob, JudgeJob, PromoteJob, Runner, StackJobs
from stackbuild.spec.gpu_image import expects_gpu
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform
from stackbuild.spec.platforms import platform_in_a_name

CPU = "cpu"
_ARM = "-arm64"


def runner_for(kind: str, platform: Platform, runners: Mapping[str, Sequence[str]]) -> Runner:
    """The runner for a kind of job on a platform.

    Args:
        kind: ``cpu`` or a compute capability such as ``sm_90``.
        platform: Of the image: it is built and run on a machine of its own platform.
        runners: The site file's ``[runners]``.
    """
    arm = platform == "linux/arm64"
    key = f"{kind}{_ARM}" if arm else kind
    if key in runners:
        return Runner(kind=key, labels=tuple(runners[key]), mapped=True)
    labels = (*(() if kind == CPU else ("gpu", kind)), *(("arm64",) if arm else ()))
    return Runner(kind=key, labels=labels)


def jobs_of(
    stack: LoadedSpec,
    path: str,
    facts: Facts,
    runners: Mapping[str, Sequence[str]],
    *,
    changed: Sequence[str] = (),
) -> StackJobs:
    """The jobs of one stack.

    Args:
        stack: The loaded spec.
        path: Of the spec, as the command line takes it.
        facts: Which compute capability a product has.
        runners: The site file's ``[runners]``.
        changed: Why it has jobs.

    Raises:
        SpecError: ``unknown-gpu``; ``no-target-gpus``: a GPU stack that names no GPU to be judged on.
    """
    spec = stack.spec
    required = _required(stack, facts)
    one = len(spec.platforms) == 1
    build, judge = [], []
    for platform in spec.platforms:
        suffix = "" if one else f"-{platform_in_a_name(platform)}"
        build.append(
            BuildJob(id=f"{spec.name}{suffix}", platform=platform, runner=runner_for(CPU, platform, runners))
        )
        judge += [
            JudgeJob(
                id=f"{spec.name}{suffix}-{kind}",
                platform=platform,
                requires=kind,
                gpus=names,
                runner=runner_for(kind, platform, runners),
            )
            for kind, names in required.items()
        ]
    external = spec.external or ""
    promote = PromoteJob(
        id=spec.name, require=",".join(required), runner=runner_for(CPU, "linux/amd64", runners)
    )
    return StackJobs(
        stack=spec.name,
        path=path,
        external=external,
        changed=tuple(changed),
        build=() if external else tuple(build),
        judge=tuple(judge),
        promote=None if external else promote,
    )


def _required(stack: LoadedSpec, facts: Facts) -> dict[str, tuple[str, ...]]:
    """Each compute capability of the target and its products; ``cpu`` alone for a stack without GPU."""
    spec = stack.spec
    if not expects_gpu(spec):
        return {CPU: ()}
    if not spec.target.gpus:
        raise SpecError(
            "the stack uses GPUs and names none, so nobody can say where it must be judged",
            code="no-target-gpus",
            where=stack.where("target"),
            do="Name them: target: {gpus: [A100, H100]}.",
        )
    found: dict[ComputeCapability, list[str]] = {}
    offer = target_offer(spec.target, facts, where=stack.where("target", "gpus"))
    for gpu in offer.gpus:
        if gpu.compute_capability is not None:
            found.setdefault(gpu.compute_capability, []).append(gpu.name)
    return {capability.sm: tuple(found[capability]) for capability in sorted(found)}
