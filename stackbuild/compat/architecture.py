"""Which GPU architectures a build covers: arithmetic over cubins and PTX, not string search.

Rules (CUDA C++ Programming Guide 13.x, "Binary Compatibility", "PTX Compatibility",
"Architecture-Specific Features", "Family-Specific Features"):

* A cubin for sm_XY runs on the same major with minor >= Y; never on another major.
* Binary compatibility holds for desktop parts only: Tegra parts (5.3, 6.2, 7.2, 8.7, 10.1, 11.0)
  run only their own cubins, and theirs run nowhere else.
* sm_XYa (architecture-specific) runs on XY exactly; sm_XYf (family) on the same major, minor >= Y.
* PTX for compute_XY can be compiled for anything >= XY if the driver's CUDA is at least the
  toolkit's that made it; compute_XYa for XY exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from packaging.version import Version

from stackbuild.compat.subject import CudaComponent, GpuOffer, HostOffer
from stackbuild.compat.versions import ComputeCapability, CudaVersion, parse_compute_capability, parse_cuda
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict

_TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
_SUFFIX = re.compile(r"(?:sm|compute)_\d+([af]?)")


@dataclass(frozen=True)
class Coverage:
    """How a build runs on a compute capability.

    Attributes:
        how: ``cubin``, ``ptx`` (compiled by the driver at first use) or ``none``.
        by: The architecture that serves, for example ``sm_86`` or ``compute_90``; empty for none.
    """

    how: Literal["cubin", "ptx", "none"]
    by: str = ""


def _suffix(architecture: str) -> str:
    match = _SUFFIX.fullmatch(architecture)
    return match[1] if match else ""


@cache
def cubin_runs(architecture: str, device: ComputeCapability) -> bool:
    """Whether a cubin for ``architecture`` (``sm_86``, ``sm_90a``, ``sm_100f``) runs on ``device``."""
    built = parse_compute_capability(architecture)
    if _suffix(architecture) == "a" or built in _TEGRA or device in _TEGRA:
        return built == device
    return built.major == device.major and built.minor <= device.minor


@cache
def ptx_compiles(architecture: str, device: ComputeCapability) -> bool:
    """Whether PTX for ``architecture`` (``compute_90``) can be compiled for ``device`` by a driver new enough."""
    built = parse_compute_capability(architecture)
    suffix = _suffix(architecture)
    if suffix == "a":
        return built == device
    if suffix == "f":
        return built.major == device.major and built.minor <= device.minor
    return built <= device


def coverage(sm: Iterable[str], ptx: Iterable[str], device: ComputeCapability) -> Coverage:
    """How a build with these cubins and PTX runs on ``device``; a cubin wins over PTX, the nearest one first."""
    cubins = [name for name in sm if cubin_runs(name, device)]
    if cubins:
        return Coverage(
            "cubin", max(cubins, key=lambda name: (parse_compute_capability(name), _suffix(name)))
        )
    sources = [name for name in ptx if ptx_compiles(name, device)]
    if sources:
        return Coverage("ptx", max(sources, key=parse_compute_capability))
    return Coverage("none")


@cache
def covering_variants(device: ComputeCapability, facts: Facts, torch: str | None = None) -> tuple[str, ...]:
    """CUDA variants of torch whose cubins or PTX cover ``device``, lowest first.

    Args:
        device: The compute capability.
        facts: The fact tables.
        torch: Only of this release; of any release when None.
    """
    covering = {
        (parse_cuda(row.cuda), row.variant)
        for row in facts.table("torch_variants").rows
        if torch in (None, row.version) and coverage(row.sm, row.ptx, device).how != "none"
    }
    return tuple(variant for _, variant in sorted(covering))


def covering_advice(component: CudaComponent, device: ComputeCapability, facts: Facts) -> str:
    """The next step where a framework's build has no code for ``device``.

    Args:
        component: The build.
        device: The compute capability.
        facts: What other builds cover.
    """
    if component.name == "onnxruntime-gpu" and (release := _covering_onnxruntime(component, device, facts)):
        return f"Use onnxruntime-gpu {release}, which has code for it."
    if component.name != "torch":
        return f"Use a release of {component.name} built for {device.sm}, or with PTX that can be compiled for it."
    public = component.version.split("+")[0].split(" ")[0]
    of_release = covering_variants(device, facts, public)
    if of_release:
        return f"Use torch {public} from channel {' or '.join(of_release)}."
    of_any = covering_variants(device, facts)
    if of_any:
        return f"No build of torch {public} covers it; use another torch release from channel {' or '.join(of_any)}."
    return f"No torch build in the facts covers {device}; build torch for {device.sm} or use another GPU."


def _covering_onnxruntime(component: CudaComponent, device: ComputeCapability, facts: Facts) -> str | None:
    """The newest measured onnxruntime-gpu of the component's CUDA major that covers ``device``."""
    covering = [
        row.version
        for row in facts.table("onnxruntime_releases").rows
        if row.sm is not None
        and (component.cuda is None or row.cuda_major == component.cuda.major)
        and coverage(row.sm, row.ptx or (), device).how != "none"
    ]
    return max(covering, key=Version, default=None)


def judge_architecture(
    component: CudaComponent, gpu: GpuOffer, max_cuda: CudaVersion | None, facts: Facts
) -> Finding:
    """Gate ``arch-not-covered``: does this component carry code that this GPU can run?

    Args:
        component: What was built, and for which architectures.
        gpu: The GPU; its compute capability may be unknown.
        max_cuda: The driver's CUDA maximum, which bounds the PTX it compiles; None when unknown.
        facts: For the next step.
    """
    subject = f"{component.title} on {gpu.name}"
    device = gpu.compute_capability
    if device is None:
        return Finding(
            code="arch-not-covered",
            verdict=Verdict.SKIP,
            subject=subject,
            summary=f"The compute capability of {gpu.name} is not in the facts, so its coverage was not judged.",
            next_step="Name the compute capability (nvidia-smi --query-gpu=compute_cap --format=csv) in place of the product.",
        )
    required = f"code for compute capability {device}"
    if component.sm is None:
        return Finding(
            code="arch-not-covered",
            verdict=Verdict.WARN,
            subject=subject,
            measured="unknown",
            required=required,
            summary=f"Nobody has read which GPU architectures {component.title} was built for.",
            next_step="stackbuild scan IMAGE reads them from the libraries once the image is built.",
            details={"note": "unknown"},
        )
    measured = " ".join((*component.sm, *component.ptx)) or "no GPU code"
    found = coverage(component.sm, component.ptx, device)
    unsure = " (an uncertain fact)" if component.confidence == "uncertain" else ""
    details = {
        "compute_capability": str(device),
        "how": found.how,
        "by": found.by,
        "confidence": component.confidence,
    }
    if found.how == "cubin":
        return Finding(
            code="arch-not-covered",
            verdict=Verdict.PASS,
            subject=subject,
            measured=measured,
            required=required,
            summary=f"{component.title} has {found.by}, which runs on {gpu.name} ({device}){unsure}.",
            details=details,
        )
    if found.how == "ptx":
        if component.cuda is not None and max_cuda is not None and max_cuda < component.cuda:
            return Finding(
                code="ptx-not-compilable",
                verdict=Verdict.FAIL,
                subject=subject,
                measured=f"driver compiles PTX up to CUDA {max_cuda}",
                required=f"PTX made by CUDA {component.cuda}",
                summary=f"{component.title} has only PTX ({found.by}) for {gpu.name} ({device}), "
                f"made by CUDA {component.cuda}; this driver stops at {max_cuda} (error 222).",
                next_step=f"Update the driver to one that reports CUDA {component.cuda}, or use a build with {device.sm} itself.",
                details=details,
            )
        return Finding(
            code="arch-not-covered",
            verdict=Verdict.PASS,
            subject=subject,
            measured=measured,
            required=required,
            summary=f"{component.title} runs on {gpu.name} ({device}) by compiling {found.by} at first use, "
            f"which is slow the first time{unsure}.",
            details={**details, "note": "ptx-jit"},
        )
    return Finding(
        code="arch-not-covered",
        verdict=Verdict.FAIL,
        subject=subject,
        measured=measured,
        required=required,
        summary=f"{component.title} has no code that {gpu.name} ({device}) can run: "
        f"no cubin of its major and no PTX to compile{unsure}.",
        next_step=covering_advice(component, device, facts),
        details={**details, "covering_variants": list(covering_variants(device, facts))},
    )


def judge_gpu_against_toolkit(component: CudaComponent, gpu: GpuOffer, facts: Facts) -> Finding | None:
    """Gate ``gpu-dropped-by-toolkit``: CUDA majors stop compiling for old architectures.

    Returns None when nothing is known of the GPU or the component's CUDA.
    """
    if gpu.compute_capability is None or component.cuda is None:
        return None
    row = facts.architecture(str(gpu.compute_capability))
    if row is None:
        return None
    subject = f"{component.title} on {gpu.name}"
    if row.last_cuda_major is not None and component.cuda.major > row.last_cuda_major:
        return Finding(
            code="gpu-dropped-by-toolkit",
            verdict=Verdict.FAIL,
            subject=subject,
            measured=f"CUDA {component.cuda}",
            required=f"CUDA {row.last_cuda_major}.x or earlier",
            summary=f"CUDA {component.cuda.major} no longer supports {row.architecture} GPUs such as {gpu.name} "
            f"({gpu.compute_capability}); the last that does is CUDA {row.last_cuda_major}.x.",
            next_step=f"Take a base of CUDA {row.last_cuda_major}."
            if component.name == "base image"
            else f"Use a CUDA {row.last_cuda_major} variant of {component.name}.",
            details={"source": list(row.source), "confidence": row.confidence},
        )
    first = parse_cuda(row.first_cuda)
    if component.cuda < first and component.compiles:
        return Finding(
            code="gpu-newer-than-toolkit",
            verdict=Verdict.WARN,
            subject=subject,
            measured=f"CUDA {component.cuda}",
            required=f"CUDA {first} or later",
            summary=f"CUDA {component.cuda} cannot compile for {gpu.name} ({row.architecture}, {gpu.compute_capability}); "
            f"the first that can is CUDA {first}.",
            next_step=f"Take a -devel base of CUDA {first} or later if anything is compiled with this one.",
            details={"source": list(row.source), "confidence": row.confidence},
        )
    return None


def judge_gpu_against_driver(gpu: GpuOffer, host: HostOffer, facts: Facts) -> Finding | None:
    """Gates ``gpu-newer-than-driver`` and ``gpu-dropped-by-driver``: does this driver drive this GPU at all?

    Returns None when nothing is known of the GPU, or the host's driver is unknown.
    """
    if gpu.compute_capability is None or host.branch is None:
        return None
    row = facts.architecture(str(gpu.compute_capability))
    if row is None:
        return None
    measured = f"driver {host.driver_text}"
    details = {"source": list(row.source), "confidence": row.confidence}
    if row.min_driver_branch is not None and host.branch < row.min_driver_branch:
        return Finding(
            code="gpu-newer-than-driver",
            verdict=Verdict.FAIL,
            subject=gpu.name,
            measured=measured,
            required=f"R{row.min_driver_branch} or later",
            summary=f"{gpu.name} ({row.architecture}, {gpu.compute_capability}) needs driver R{row.min_driver_branch} "
            f"or later; this host has {host.driver_text}.",
            next_step=f"Update the driver to R{row.min_driver_branch} or later.",
            details=details,
        )
    if row.last_driver_branch is not None and host.branch > row.last_driver_branch:
        return Finding(
            code="gpu-dropped-by-driver",
            verdict=Verdict.FAIL,
            subject=gpu.name,
            measured=measured,
            required=f"R{row.last_driver_branch} or earlier",
            summary=f"Driver {host.driver_text} no longer supports {row.architecture} GPUs such as {gpu.name}; "
            f"R{row.last_driver_branch} is the last branch that does.",
            next_step=f"Stay on R{row.last_driver_branch} on hosts with {gpu.name}.",
            details=details,
        )
    return None
