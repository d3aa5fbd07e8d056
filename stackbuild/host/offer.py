"""What a host offers, derived from its card."""

from __future__ import annotations

from stackbuild.compat.offer import driver_max_cuda
from stackbuild.compat.subject import GpuOffer, HostOffer
from stackbuild.compat.versions import ComputeCapability, parse_compute_capability, parse_cuda, parse_driver
from stackbuild.facts.tables import Facts
from stackbuild.host.model import Host, HostGpu
from stackbuild.spec.platforms import PLATFORM_OF_MACHINE

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


def host_offer(host: Host, facts: Facts) -> HostOffer:
    """What a host of a card or fleet offers."""
    maximum, confidence = (
        (host.max_cuda, "measured") if host.max_cuda else driver_max_cuda(host.driver, facts)
    )
    offers = dict.fromkeys(gpu_offer(gpu, facts) for gpu in host.gpus)
    return HostOffer(
        name=host.name,
        posture=host.posture,
        platform=PLATFORM_OF_MACHINE.get(host.machine or ""),
        driver=parse_driver(host.driver) if host.driver else None,
        driver_text=host.driver or "",
        max_cuda=parse_cuda(maximum) if maximum else None,
        max_cuda_confidence=confidence,
        injection=host.injection,
        gpus=tuple(offers),
        driver_flavor=host.driver_flavor,
    )
