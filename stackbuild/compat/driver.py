"""The driver's CUDA maximum against a runtime: native, minor-version, forward compatible, or not (DESIGN §3.4).

Sources: CUDA Toolkit release notes 13.2, tables 2 and 3 (minor-version compatibility floors); CUDA
Compatibility guide, forward-compatibility table for R615 / CUDA 13.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from stackbuild.compat.subject import Compatibility, CompatLibrary, CudaComponent, HostOffer
from stackbuild.compat.versions import CudaVersion, DriverVersion, parse_driver
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict

_RANK: dict[Compatibility, int] = {"native": 0, "minor": 1, "forward": 2}


@dataclass(frozen=True)
class DriverAnswer:
    """How a driver serves a CUDA runtime.

    Attributes:
        how: ``native``, ``minor``, ``forward`` or ``none``.
        reason: A clause for a person.
        needs: What the driver would need instead, as a clause; empty for native.
    """

    how: Literal["native", "minor", "forward", "none"]
    reason: str
    needs: str = ""


def forward_compatible_gpus(host: HostOffer) -> bool:
    """Whether all GPUs of the host are of a kind that NVIDIA supports with a cuda-compat package.

    Data-centre GPUs and Jetson are; selected NGC-ready RTX cards are too, but nothing tells which.
    """
    return bool(host.gpus) and all(
        gpu.kind in ("datacenter", "jetson") or gpu.brand == "tesla" for gpu in host.gpus
    )


@cache
def driver_for(cuda: CudaVersion, facts: Facts) -> str | None:
    """The first driver branch that reports at least ``cuda``, for example ``R580``."""
    for branch in facts.known_branches():
        row = facts.driver_branch(branch)
        if row is not None and row.max_cuda is not None:
            major, minor = row.max_cuda.split(".")
            if CudaVersion(int(major), int(minor)) >= cuda:
                return f"R{branch}"
    return None


def answer(
    cuda: CudaVersion, host: HostOffer, compat: CompatLibrary | None, facts: Facts
) -> DriverAnswer | None:
    """How the host's driver serves a runtime of ``cuda``; None when neither driver nor maximum is known."""
    if host.max_cuda is None:
        return None
    if host.max_cuda >= cuda:
        return DriverAnswer("native", f"the driver's CUDA maximum {host.max_cuda} is at least {cuda}")
    branch = driver_for(cuda, facts)
    needs = f"a driver that reports CUDA {cuda}" + (f" ({branch} or later)" if branch else "")
    floor = facts.minor_version_floor(cuda.major)
    if host.max_cuda.major == cuda.major and (
        host.driver is None or floor is None or host.driver >= parse_driver(floor.min_driver)
    ):
        return DriverAnswer(
            "minor",
            f"minor-version compatible: same CUDA major, and the driver is past its floor"
            f"{f' {floor.min_driver}' if floor else ''}; PTX made by CUDA {cuda} cannot be compiled by it",
            needs,
        )
    if not forward_compatible_gpus(host):
        theirs = "not for this host's" if host.gpus else "and which GPUs the host has is not known"
        return DriverAnswer("none", f"forward compatibility is for data-centre GPUs only, {theirs}", needs)
    row = facts.forward_compatibility(str(cuda), host.branch) if host.branch is not None else None
    if row is None or row.state != "compatible":
        listed = "does not list" if row is None else "has no package for"
        return DriverAnswer(
            "none",
            f"NVIDIA's forward-compatibility table {listed} CUDA {cuda} on R{host.branch or '?'}",
            needs,
        )
    package = f"cuda-compat-{cuda.major}-{cuda.minor}"
    if compat is None or (compat.cuda is not None and compat.cuda < cuda):
        return DriverAnswer(
            "none", f"forward compatibility would work with {package} in the image, which is not there", needs
        )
    return DriverAnswer("forward", f"forward compatible through {package} in the image", needs)


def accepted(how: Literal["native", "minor", "forward", "none"], accepts: Compatibility) -> bool:
    """Whether a way of serving a runtime is within the loosest compatibility that is accepted."""
    return how != "none" and _RANK[how] <= _RANK[accepts]


def judge_driver(
    component: CudaComponent,
    host: HostOffer,
    compat: CompatLibrary | None,
    accepts: Compatibility | None,
    facts: Facts,
) -> Finding:
    """Gate ``driver-too-old``: can the host's driver serve this component's CUDA runtime?

    Args:
        component: What brings the runtime; one without a known CUDA is a SKIP.
        host: The host.
        compat: The image's cuda-compat library.
        accepts: What the spec accepts; None judges minor-version compatibility as WARN.
        facts: The fact tables.
    """
    if component.cuda is None:
        return Finding(
            code="driver-too-old",
            verdict=Verdict.SKIP,
            subject=component.title,
            summary=f"The CUDA runtime of {component.title} is not known, so no driver could be judged against it.",
        )
    found = answer(component.cuda, host, compat, facts)
    required = f"CUDA {component.cuda} ({component.title})"
    if found is None:
        return Finding(
            code="driver-too-old",
            verdict=Verdict.SKIP,
            subject=component.title,
            required=required,
            measured="no driver known",
            summary=f"Neither the driver of {host.name} nor its CUDA maximum is known.",
            next_step="Give --driver, or a host file made by 'stackbuild host --format json' on that machine.",
        )
    measured = f"CUDA maximum {host.max_cuda}"
    if host.driver_text:
        measured = f"driver {host.driver_text}, {measured}"
    if host.max_cuda_confidence == "uncertain":
        measured += " (an uncertain fact)"
    details = {
        "how": found.how,
        "cuda": str(component.cuda),
        "max_cuda": str(host.max_cuda),
        "minor_compat_possible": found.how == "minor",
    }
    verdict = Verdict.PASS
    summary = f"{component.title} needs CUDA {component.cuda}: {found.reason}."
    next_step = ""
    if found.how == "none":
        verdict = Verdict.FAIL
        summary = f"{component.title} needs CUDA {component.cuda}, this driver stops at {host.max_cuda}: {found.reason}."
        next_step = (
            f"Use {found.needs}, or a variant of CUDA {host.max_cuda.major if host.max_cuda else ''}.x."
        )
    elif found.how == "minor" and accepts is None:
        verdict = Verdict.WARN
    elif not accepted(found.how, accepts or "native"):
        verdict = Verdict.FAIL
        summary += f" The spec accepts only {accepts or 'native'}."
        next_step = f"Use {found.needs}, or accept it with target.compatibility: {found.how}."
    return Finding(
        code="driver-too-old",
        verdict=verdict,
        subject=component.title,
        measured=measured,
        required=required,
        summary=summary,
        next_step=next_step,
        details=details,
    )


def judge_compat_library(compat: CompatLibrary, host: HostOffer) -> Finding | None:
    """Gates ``compat-lib-on-unsupported-gpu`` (error 804) and ``compat-lib-older-than-driver`` (error 803).

    Only a library that the loader finds first can do harm; a newer toolkit looks first. Returns None then.
    """
    if not compat.loaded_first or host.driver is None:
        return None
    text = _driver_text(compat.driver)
    if compat.driver is not None and compat.driver < host.driver:
        return Finding(
            code="compat-lib-older-than-driver",
            verdict=Verdict.FAIL,
            subject="cuda-compat",
            measured=f"libcuda {text} in the image, driver {host.driver_text}",
            required="a compat library at least as new as the driver",
            summary=f"The image's compat libcuda ({text}) is older than the host's driver {host.driver_text} and is loaded "
            f"first: CUDA fails with error 803.",
            next_step="Take /usr/local/cuda/compat out of LD_LIBRARY_PATH and ld.so.conf.",
        )
    if not forward_compatible_gpus(host):
        names = ", ".join(gpu.name for gpu in host.gpus) or "this host's GPUs"
        return Finding(
            code="compat-lib-on-unsupported-gpu",
            verdict=Verdict.FAIL,
            subject="cuda-compat",
            measured=f"libcuda {text} loaded first on {names}",
            required="a data-centre GPU, or the driver's own libcuda",
            summary=f"The image's compat libcuda is loaded first, and {names} does not support forward compatibility: "
            f"CUDA fails with error 804, even where nvidia-smi works.",
            next_step="Take /usr/local/cuda/compat out of LD_LIBRARY_PATH and ld.so.conf, or update the driver.",
        )
    return Finding(
        code="compat-lib-on-unsupported-gpu",
        verdict=Verdict.PASS,
        subject="cuda-compat",
        measured=f"libcuda {text}",
        summary="The image's compat libcuda is loaded first, and this host's GPUs support forward compatibility.",
        details={"note": "forward-compat"},
    )


def _driver_text(driver: DriverVersion | None) -> str:
    return (
        ".".join(f"{part:02d}" if index else str(part) for index, part in enumerate(driver))
        if driver
        else "?"
    )
