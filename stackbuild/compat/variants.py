"""Choosing: the variant for a target, and the newest stack for a host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from packaging.version import Version

from stackbuild.compat.architecture import (
    judge_architecture,
    judge_gpu_against_driver,
    judge_gpu_against_toolkit,
)
from stackbuild.compat.contents import known_requirement
from stackbuild.compat.driver import accepted, answer
from stackbuild.compat.offer import target_offer
from stackbuild.compat.requirements import judge_requirement
from stackbuild.compat.subject import Compatibility, CudaComponent, GpuOffer, HostOffer
from stackbuild.compat.versions import CudaVersion, parse_cuda, parse_variant
from stackbuild.errors import LockError
from stackbuild.facts.rows import TorchRelease
from stackbuild.facts.tables import Facts
from stackbuild.findings import Verdict
from stackbuild.spec.model import TargetSpec


@dataclass(frozen=True)
class Choice:
    """A torch build that fits, and the newest CUDA base that fits with it.

    Attributes:
        torch: Public version, for example ``2.14.1``.
        variant: For example ``cu130``.
        base_cuda: The newest CUDA release of an nvidia/cuda base with the variant's major that the host starts.
        why_not: Rejected newer variants and the reason for each, newest first.
    """

    torch: str
    variant: str
    base_cuda: str | None
    why_not: tuple[tuple[str, str], ...] = ()

    @property
    def told(self) -> str:
        """What ``auto`` became and why nothing newer, as one sentence."""
        rejected = "".join(f"; not {variant}: {why.rstrip('.')}" for variant, why in self.why_not)
        return f"variant auto is {self.variant} for torch {self.torch}{rejected}"


@cache
def _component(release: TorchRelease, variant: str, facts: Facts) -> CudaComponent | None:
    cuda = parse_variant(variant)
    row = facts.torch_variant(release.version, variant)
    if cuda is None or row is None:
        return None
    return CudaComponent("torch", f"{release.version}+{variant}", cuda, row.sm, row.ptx, row.confidence)


def _objection(component: CudaComponent, host: HostOffer, accepts: Compatibility, facts: Facts) -> str:
    """Why this build does not fit the host; empty when it does. Unknowns do not object."""
    if component.cuda is not None and host.max_cuda is not None and component.cuda > host.max_cuda:
        driver = answer(component.cuda, host, None, facts)
        if driver is not None and not accepted(driver.how, accepts):
            return f"{component.title} needs CUDA {component.cuda}: {driver.reason}"
    ptx_limit = host.max_cuda if component.ptx else None
    return next(
        (why for gpu in host.gpus if (why := _objection_of_gpu(component, gpu, ptx_limit, facts))), ""
    )


@cache
def _objection_of_gpu(
    component: CudaComponent, gpu: GpuOffer, max_cuda: CudaVersion | None, facts: Facts
) -> str:
    dropped = judge_gpu_against_toolkit(component, gpu, facts)
    if dropped is not None and dropped.verdict is Verdict.FAIL:
        return dropped.summary
    known = gpu.compute_capability is not None and component.sm is not None
    if known and judge_architecture(component, gpu, max_cuda, facts).verdict is Verdict.FAIL:
        return f"{component.title} has no code that {gpu.name} can run."
    return ""


@cache
def _channels(release: TorchRelease) -> tuple[str, ...]:
    with_cuda = [
        (cuda, channel) for channel in release.channels if (cuda := parse_variant(channel)) is not None
    ]
    return tuple(channel for _, channel in sorted(with_cuda, reverse=True))


@cache
def _releases(facts: Facts) -> tuple[TorchRelease, ...]:
    rows = facts.table("torch_releases").rows
    return tuple(sorted(rows, key=lambda row: Version(row.version), reverse=True))


@cache
def _bases(major: int, facts: Facts) -> tuple[tuple[CudaVersion, str], ...]:
    """CUDA releases of a major with what their base images demand, newest first."""
    releases = {parse_cuda(row.cuda) for row in facts.table("toolkits").rows}
    return tuple(
        (cuda, known_requirement(cuda, facts))
        for cuda in sorted(releases, reverse=True)
        if cuda.major == major
    )


def choose_variant(torch: str, host: HostOffer, accepts: Compatibility, facts: Facts) -> Choice | None:
    """The newest published CUDA variant of a torch release that fits the host; None when none does.

    Args:
        torch: Public version.
        host: The host, or the target fleet as one.
        accepts: The loosest compatibility that counts as fitting.
        facts: The fact tables.
    """
    release = facts.torch_release(torch)
    if release is None:
        return None
    rejected: list[tuple[str, str]] = []
    for channel in _channels(release):
        component = _component(release, channel, facts)
        if component is None:
            rejected.append((channel, f"what torch {torch} has for {channel} is not in the facts"))
            continue
        objection = _objection(component, host, accepts, facts)
        if not objection:
            base = newest_base(component.cuda, host, accepts, facts) if component.cuda else None
            return Choice(torch, channel, base, tuple(rejected))
        rejected.append((channel, objection))
    return None


def newest_base(
    at_most_major: CudaVersion, host: HostOffer, accepts: Compatibility, facts: Facts
) -> str | None:
    """The newest CUDA release with this major whose base images the host runs, for example ``13.0``.

    A base must fit twice: its runtime by compatibility, and its own NVIDIA_REQUIRE_CUDA, which is stricter.
    """
    for cuda, demand in _bases(at_most_major.major, facts):
        found = answer(cuda, host, None, facts)
        if found is not None and not accepted(found.how, accepts):
            continue
        if judge_requirement("NVIDIA_REQUIRE_CUDA", demand, host).verdict is not Verdict.FAIL:
            return str(cuda)
    return None


def newest_fitting(host: HostOffer, accepts: Compatibility, facts: Facts) -> Choice | None:
    """The newest torch release with a CUDA variant that fits the host, and that variant."""
    if any(_undriven(host, facts)):
        return None
    for release in _releases(facts):
        choice = choose_variant(release.version, host, accepts, facts)
        if choice is not None:
            return choice
    return None


def _undriven(host: HostOffer, facts: Facts) -> list[bool]:
    return [judge_gpu_against_driver(gpu, host, facts) is not None for gpu in host.gpus]


def resolve_auto_variant(torch: str, target: TargetSpec, facts: Facts) -> Choice:
    """The variant that ``variant: auto`` stands for: the newest that fits the whole target.

    Raises:
        LockError: The target says nothing, the release is unknown, or no variant fits.
    """
    if not target.gpus and not target.driver:
        raise LockError(
            "frameworks.torch.variant is auto, and target names neither GPUs nor a driver to resolve it from.",
            code="auto-without-target",
            do="Name target.driver and target.gpus, or a variant such as cu130.",
        )
    if facts.torch_release(torch) is None:
        raise LockError(
            f"frameworks.torch.variant is auto, and torch {torch} is not in the facts.",
            code="channel-not-published",
            do="Name the variant, or a release of 'stackbuild facts torch_releases'.",
        )
    host = target_offer(target, facts)
    choice = choose_variant(torch, host, target.compatibility, facts)
    if choice is None:
        raise LockError(
            f"No published CUDA variant of torch {torch} fits the target.",
            code="no-fitting-variant",
            detail="\n".join(_reasons(torch, host, target.compatibility, facts)),
            do="Take another torch release, a newer driver in the fleet, or a looser target.compatibility.",
        )
    return choice


def _reasons(torch: str, host: HostOffer, accepts: Compatibility, facts: Facts) -> list[str]:
    release = facts.torch_release(torch)
    lines = []
    for channel in _channels(release) if release else ():
        component = _component(release, channel, facts) if release else None
        if component is not None:
            lines.append(f"{channel}: {_objection(component, host, accepts, facts)}")
    return lines
