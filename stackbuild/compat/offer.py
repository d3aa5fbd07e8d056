"""What a host offers, derived from its card, from a spec's target or from --driver and --gpu."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stackbuild.compat.subject import GpuOffer, HostOffer
from stackbuild.compat.versions import ComputeCapability, parse_compute_capability, parse_cuda, parse_driver
from stackbuild.errors import SpecError, UsageError
from stackbuild.facts.rows import Confidence
from stackbuild.facts.tables import Facts
from stackbuild.spec.model import TargetSpec

if TYPE_CHECKING:
    from stackbuild.host.model import Host, HostGpu

_PLATFORMS = {
    "x86_64": "linux/amd64",
    "amd64": "linux/amd64",
    "aarch64": "linux/arm64",
    "arm64": "linux/arm64",
}
_SUGGESTED_GPUS = 5
_BRAND_KINDS = {
    "tesla": "datacenter",
    "nvidia": "datacenter",
    "geforce": "geforce",
    "geforcertx": "geforce",
    "titan": "geforce",
    "titanrtx": "geforce",
    "quadro": "workstation",
    "quadrortx": "workstation",
    "nvidiartx": "workstation",
}


def gpu_offer(gpu: HostGpu, facts: Facts) -> GpuOffer:
    """One GPU, with what the facts know of it where the host did not say."""
    row = facts.gpu(gpu.name)
    capability: ComputeCapability | None = None
    if gpu.compute_capability is not None:
        capability = parse_compute_capability(gpu.compute_capability)
    elif row is not None:
        capability = parse_compute_capability(row.compute_capability)
    brand = gpu.brand.lower() if gpu.brand else None
    # A data-centre part reports brand nvidia on new drivers; the facts' kind is surer than the brand.
    kind = row.kind if row is not None else _BRAND_KINDS.get(brand or "")
    return GpuOffer(gpu.name, capability, kind, brand)


def named_gpu(text: str, facts: Facts) -> GpuOffer:
    """A GPU by product name or compute capability (``H200``, ``9.0``, ``sm_90``).

    Raises:
        UsageError: It is neither a product of the facts nor a compute capability.
    """
    row = facts.gpu(text)
    like = facts.gpus_like(text)
    if row is None and len(like) == 1:
        row = like[0]
    if row is not None:
        return GpuOffer(row.product, parse_compute_capability(row.compute_capability), row.kind)
    try:
        capability = parse_compute_capability(text)
    except ValueError:
        near = ", ".join([gpu.product for gpu in like[:_SUGGESTED_GPUS]] or facts.gpus_near(text))
        raise UsageError(
            f"GPU {text!r} is {'more than one product' if like else 'not a product of the facts'} "
            "and is no compute capability.",
            code="unknown-gpu",
            do=f"Did you mean {near}?"
            if near
            else "Name a product of 'stackbuild facts gpus', or a compute capability such as 9.0.",
        ) from None
    return GpuOffer(f"compute capability {capability}", capability, None)


def _max_cuda(driver: str | None, facts: Facts) -> tuple[str | None, Confidence]:
    row = facts.driver_branch(int(driver.split(".")[0])) if driver else None
    if row is not None and row.max_cuda is not None:
        return row.max_cuda, row.confidence
    if driver is None:
        return None, "measured"
    # A driver between two known branches, or newer than all, reports at least what the older one does.
    older = [branch for branch in facts.known_branches() if branch <= int(driver.split(".")[0])]
    known = [row.max_cuda for branch in older if (row := facts.driver_branch(branch)) and row.max_cuda]
    return (known[-1] if known else None), "uncertain"


def host_offer(host: Host, facts: Facts) -> HostOffer:
    """What a host of a card or fleet offers."""
    maximum, confidence = (host.max_cuda, "measured") if host.max_cuda else _max_cuda(host.driver, facts)
    offers = dict.fromkeys(gpu_offer(gpu, facts) for gpu in host.gpus)
    return HostOffer(
        name=host.name,
        posture=host.posture,
        platform=_PLATFORMS.get(host.machine or ""),
        driver=parse_driver(host.driver) if host.driver else None,
        driver_text=host.driver or "",
        max_cuda=parse_cuda(maximum) if maximum else None,
        max_cuda_confidence=confidence,
        injection=host.injection,
        gpus=tuple(offers),
        driver_flavor=host.driver_flavor,
    )


def described_offer(driver: str | None, gpus: Iterable[str], facts: Facts, *, name: str = "") -> HostOffer:
    """The host that ``--driver`` and ``--gpu`` describe.

    Raises:
        UsageError: The driver is not a version, or a GPU is unknown.
    """
    try:
        version = parse_driver(driver) if driver else None
    except ValueError:
        raise UsageError(
            f"driver {driver!r} is not a version such as 535.183.01.",
            code="bad-driver-version",
            do="Give the driver that nvidia-smi prints.",
        ) from None
    maximum, confidence = _max_cuda(driver, facts)
    offers = tuple(dict.fromkeys(named_gpu(text, facts) for text in gpus))
    label = name or ", ".join(
        [*(f"driver {driver}" for _ in range(driver is not None)), *(gpu.name for gpu in offers)]
    )
    return HostOffer(
        name=label,
        driver=version,
        driver_text=driver or "",
        max_cuda=parse_cuda(maximum) if maximum else None,
        max_cuda_confidence=confidence,
        gpus=offers,
    )


def target_offer(target: TargetSpec, facts: Facts, *, where: str = "target.gpus") -> HostOffer:
    """The oldest host of the fleet that a spec's target describes.

    Args:
        target: What the spec says.
        facts: Which products there are.
        where: Where the spec names its GPUs, for the error.

    Raises:
        SpecError: ``unknown-gpu``: a GPU is neither a product of the facts nor a compute capability.
    """
    driver = target.driver.removeprefix(">=") if target.driver else None
    try:
        return described_offer(driver, target.gpus, facts, name="the target fleet")
    except UsageError as error:
        raise SpecError(error.what, code=error.code, where=where, do=error.do) from None
