"""What gates judge: an image's needs and a host's offer, as small hashable values.

They are derived from specs, locks, pin lists, image configurations and host cards (``needs.py``,
``profile.py``), so that one gate serves them all and equal questions are answered once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from stackbuild.compat.versions import ComputeCapability, CudaVersion, DriverVersion
from stackbuild.facts.rows import Confidence

Compatibility = Literal["native", "minor", "forward"]


@dataclass(frozen=True, slots=True)
class CudaComponent:
    """One part of an image that brings or links a CUDA runtime.

    Attributes:
        name: ``base image``, ``torch``, ``onnxruntime-gpu``, ``tensorrt`` or a package's name.
        version: Its version as a person knows it, for example ``2.14.1+cu130``.
        cuda: The CUDA runtime it was built for.
        sm: Binary architectures it carries (``sm_90``, ``sm_90a``); None when nobody knows them.
        ptx: PTX it carries (``compute_90``).
        confidence: How sure ``cuda``, ``sm`` and ``ptx`` are.
        compiles: True when it has nvcc, as the -devel flavours of nvidia/cuda have.
    """

    name: str
    version: str
    cuda: CudaVersion | None
    sm: tuple[str, ...] | None = None
    ptx: tuple[str, ...] = ()
    confidence: Confidence = "measured"
    compiles: bool = False

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class CompatLibrary:
    """A cuda-compat ``libcuda`` inside the image.

    Attributes:
        driver: The driver release it was taken from, for example ``(465, 19, 1)``; None when unknown.
        cuda: The CUDA level it gives; None when unknown.
        loaded_first: True when the loader finds it before the host's own library.
    """

    driver: DriverVersion | None
    cuda: CudaVersion | None
    loaded_first: bool = False


@dataclass(frozen=True, slots=True)
class ImageNeeds:
    """What an image asks of a host.

    Attributes:
        name: The stack's name or the image reference.
        platform: For example ``linux/amd64``.
        components: Its CUDA components; empty for a CPU image.
        requirements: Its ``NVIDIA_REQUIRE_*`` variables as (name, value), in name order.
        requirements_disabled: True when ``NVIDIA_DISABLE_REQUIRE`` is set.
        compat: Its cuda-compat library, if it has one.
        accepts: The loosest compatibility its spec accepts; None when no spec says.
    """

    name: str
    platform: str = "linux/amd64"
    components: tuple[CudaComponent, ...] = ()
    requirements: tuple[tuple[str, str], ...] = ()
    requirements_disabled: bool = False
    compat: CompatLibrary | None = None
    accepts: Compatibility | None = None


@dataclass(frozen=True, slots=True)
class GpuOffer:
    """One kind of GPU in a host.

    Attributes:
        name: As the driver or the facts name it.
        compute_capability: None when neither the host nor the facts know it.
        kind: ``datacenter``, ``workstation``, ``geforce``, ``jetson``; None when unknown.
        brand: NVML's brand in lower case (``tesla``, ``geforce``); None when unknown.
    """

    name: str
    compute_capability: ComputeCapability | None
    kind: str | None
    brand: str | None = None


@dataclass(frozen=True, slots=True)
class HostOffer:
    """What a host offers; two hosts that offer the same are equal, whatever their names.

    Attributes:
        name: For people; not compared.
        posture: ``linux``, ``wsl2``, ``windows``, ``macos`` or ``amd``.
        platform: For example ``linux/amd64``; None when unknown.
        driver: Its NVIDIA driver; None when it has none or nobody said.
        driver_text: The same as written.
        max_cuda: The driver's CUDA maximum; None when unknown.
        max_cuda_confidence: How sure that is: ``measured`` when the host said so itself.
        injection: ``legacy``, ``cdi``, ``jit-cdi``, ``csv``, ``none``; None when unknown.
        gpus: Its GPUs, each kind once.
    """

    name: str = field(compare=False)
    posture: str = "linux"
    platform: str | None = None
    driver: DriverVersion | None = None
    driver_text: str = ""
    max_cuda: CudaVersion | None = None
    max_cuda_confidence: Confidence = "measured"
    injection: str | None = None
    gpus: tuple[GpuOffer, ...] = ()
    driver_flavor: str | None = None

    @property
    def branch(self) -> int | None:
        """The driver's branch, its version's first part."""
        return self.driver[0] if self.driver else None
