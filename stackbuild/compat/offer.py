"""What a host offers, derived from a spec's target or from --driver and --gpu."""

from __future__ import annotations

from collections.abc import Iterable

from stackbuild.compat.subject import GpuOffer, HostOffer
from stackbuild.compat.versions import parse_compute_capability, parse_cuda, parse_driver
from stackbuild.errors import SpecError, UsageError
from stackbuild.facts.rows import Confidence
from stackbuild.facts.tables import Facts
from stackbuild.spec.model import TargetSpec

_SUGGESTED_GPUS = 5


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


def driver_max_cuda(driver: str | None, facts: Facts) -> tuple[str | None, Confidence]:
    """The CUDA maximum that a driver reports, and how sure that is; None where no known branch is as old.

    Args:
        driver: Its version, for example ``535.183.01``; None where it is unknown.
        facts: The fact tables.
    """
    row = facts.driver_branch(int(driver.split(".")[0])) if driver else None
    if row is not None and row.max_cuda is not None:
        return row.max_cuda, row.confidence
    if driver is None:
        return None, "measured"
    # A driver between two known branches, or newer than all, reports at least what the older one does.
    older = [branch for branch in facts.known_branches() if branch <= int(driver.split(".")[0])]
    known = [row.max_cuda for branch in older if (row := facts.driver_branch(branch)) and row.max_cuda]
    return (known[-1] if known else None), "uncertain"


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
    maximum, confidence = driver_max_cuda(driver, facts)
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
