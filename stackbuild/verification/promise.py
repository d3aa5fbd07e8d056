"""What an image promises, in the one form that gates compare measurements with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from stackbuild.compat.subject import Compatibility
from stackbuild.lock.model import ImageBaseLock, PlatformLock
from stackbuild.spec.model import Platform, ServiceSpec, StackSpec
from stackbuild.verification.declared import declared
from stackbuild.verification.production import deployment_target, must_match, package_sources

if TYPE_CHECKING:
    from stackbuild.annotate.pin_list import PinList

Device = Literal["cpu", "cuda"]

_VENV_PYTHON = "/opt/venv/bin/python"
CPU_PROVIDER = "CPUExecutionProvider"
TENSORRT_PROVIDER = "TensorrtExecutionProvider"
# Distributions whose files are the module onnxruntime, and the execution provider each is chosen for.
# Source: names of the packages that https://onnxruntime.ai/docs/install/ lists.
ONNXRUNTIME_PROVIDERS: Mapping[str, str] = {
    "onnxruntime": CPU_PROVIDER,
    "onnxruntime-gpu": "CUDAExecutionProvider",
}


class PromiseModel(BaseModel):
    """Base: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PromisedDistribution(PromiseModel):
    """One distribution that must be installed with exactly this version."""

    name: str = Field(description="normalised name")
    version: str = Field(description="with its local label")
    requested: bool = Field(default=False, description="the spec names it, so its modules are imported")


class PromisedFile(PromiseModel):
    """A file that verification takes into the container."""

    name: str = Field(description="as the spec names it")
    path: str
    sha256: str


class PromisedService(PromiseModel):
    """What the image's own entrypoint must do, with the recorded request and answer."""

    service: ServiceSpec
    request: PromisedFile | None = None
    answer: PromisedFile | None = None


class Promise(PromiseModel):
    """All that is promised of one image on one platform. None and empty mean: nothing is promised."""

    source: Literal["lock", "labels", "spec", "nothing"]
    stack: str = ""
    platform: Platform = "linux/amd64"
    device: Device = "cpu"
    python: str | None = Field(default=None, description="full version, or as many parts as are known")
    python_executable: str | None = Field(default=None, description="absolute path inside the image")
    os: str | None = Field(default=None, description="ID and VERSION_ID of os-release, for example debian 12")
    glibc: str | None = None
    distributions: tuple[PromisedDistribution, ...] = Field(default=(), description="in name order")
    torch: str | None = Field(default=None, description="version with local label")
    torch_cuda: str | None = Field(
        default=None, description="torch.version.cuda: 13.0, or empty for a CPU build; None when not known"
    )
    onnxruntime: str | None = None
    onnxruntime_distribution: str | None = None
    decided: tuple[str, ...] = Field(
        default=(), description="distributions whose version or absence the spec decides against requirements"
    )
    tolerance: Mapping[str, float] = Field(
        default_factory=dict, description="precision → largest relative error"
    )
    allow_cpu_ops: tuple[str, ...] = ()
    onnx_model: str | None = Field(default=None, description="path of the stack's own model")
    onnx_model_sha256: str | None = None
    shm_size: str | None = Field(default=None, description="size of /dev/shm, for example 1g")
    torch_model: PromisedFile | None = Field(
        default=None, description="the file that builds the stack's model"
    )
    torch_model_function: str = ""
    batch: int = 1
    concurrency: int = 1
    training: bool = False
    memory_margin: float | None = Field(default=None, description="part of the memory that must stay free")
    tensorrt: bool = False
    checks: tuple[PromisedFile, ...] = ()
    service: PromisedService | None = None
    user: str | None = Field(default=None, description="user to run as; None for the image's own")
    ulimits: Mapping[str, int] = Field(default_factory=dict)
    read_only: bool = False
    compatibility: Compatibility | None = Field(
        default=None, description="the loosest way in which a driver may serve the image; None: nobody says"
    )
    package_sources: tuple[str, ...] = Field(default=(), description="names of what the packages came from")
    deployment_target: str = Field(default="", description="what the stack is for, in one line")
    must_match: Mapping[str, str] = Field(
        default_factory=dict, description="field of the frozen stack → its value in production"
    )

    @property
    def provider(self) -> str:
        """The execution provider that ONNX nodes must run on."""
        if self.onnxruntime_distribution is not None:
            return ONNXRUNTIME_PROVIDERS[self.onnxruntime_distribution]
        return "CUDAExecutionProvider" if self.device == "cuda" else CPU_PROVIDER

    @property
    def digest(self) -> str:
        """sha256, in hex, of everything promised."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def promise_of_lock(spec: StackSpec, lock: PlatformLock, platform: Platform, spec_folder: Path) -> Promise:
    """The promise that a spec and its lock make.

    Args:
        spec: The stack's spec.
        lock: The lock for ``platform``.
        platform: For example ``linux/amd64``.
        spec_folder: Folder that paths in the spec are relative to.
    """
    versions = {wheel.name: wheel.version for wheel in lock.wheels}
    ort = next((name for name in ("onnxruntime-gpu", "onnxruntime") if name in versions), None)
    torch = versions.get("torch")
    torch_spec = spec.frameworks.get("torch")
    return Promise(
        source="lock",
        stack=spec.name,
        platform=platform,
        device=_device_of_lock(spec, lock),
        python=lock.python.version if lock.python else None,
        python_executable=_VENV_PYTHON if lock.python else None,
        os=f"{lock.os.id} {lock.os.version_id}",
        glibc=lock.os.glibc,
        distributions=tuple(
            PromisedDistribution(name=wheel.name, version=wheel.version, requested=wheel.requested)
            for wheel in sorted(lock.wheels, key=lambda wheel: wheel.name)
        ),
        torch=torch,
        torch_cuda=_torch_cuda(torch, torch_spec.variant if torch_spec else None),
        onnxruntime=versions.get(ort) if ort else None,
        onnxruntime_distribution=ort,
        package_sources=package_sources(lock),
        deployment_target=deployment_target(spec.target),
        must_match=must_match(spec, spec_folder),
        **declared(spec, spec_folder),
    )


def promise_of_spec(spec: StackSpec, platform: Platform, spec_folder: Path) -> Promise:
    """The promise of an external stack, which has no lock: the frameworks that its spec names."""
    torch = spec.frameworks.get("torch")
    ort = next((name for name in ("onnxruntime-gpu", "onnxruntime") if name in spec.frameworks), None)
    variants = [framework.variant or "" for framework in spec.frameworks.values()]
    cuda = bool(spec.target.gpus) or ort == "onnxruntime-gpu" or any(v.startswith("cu") for v in variants)
    version = torch.version if torch else None
    return Promise(
        source="spec",
        stack=spec.name,
        platform=platform,
        device="cuda" if cuda else "cpu",
        python=spec.python if spec.python != "none" else None,
        torch=version,
        torch_cuda=_torch_cuda(version, torch.variant if torch else None),
        onnxruntime=spec.frameworks[ort].version if ort else None,
        onnxruntime_distribution=ort,
        deployment_target=deployment_target(spec.target),
        must_match=must_match(spec, spec_folder),
        **declared(spec, spec_folder),
    )


def promise_of_pins(pins: PinList, platform: Platform) -> Promise:
    """The promise that an image's own pin list makes: what it names, and nothing else."""
    cuda = bool(pins.cuda) or (pins.torch_variant or "").startswith("cu")
    return Promise(
        source="labels",
        stack=pins.stack,
        platform=platform,
        device="cuda" if cuda or pins.onnxruntime_package == "onnxruntime-gpu" else "cpu",
        python=pins.python,
        python_executable=_VENV_PYTHON if pins.python else None,
        os=pins.os,
        glibc=pins.glibc,
        torch=pins.torch,
        torch_cuda=_torch_cuda(pins.torch, pins.torch_variant),
        onnxruntime=pins.onnxruntime,
        onnxruntime_distribution=pins.onnxruntime_package,
    )


def promise_of_image(config: Mapping[str, Any], platform: Platform) -> Promise:
    """The promise of an image that nobody has a lock for: what its configuration says.

    Args:
        config: The image's configuration, as the engine spells it (Env, Labels, …).
        platform: The image's platform.
    """
    cuda = any(str(entry).startswith("CUDA_VERSION=") for entry in config.get("Env") or ())
    return Promise(source="nothing", platform=platform, device="cuda" if cuda else "cpu")


def variant_of(torch_version: str) -> str | None:
    """The build variant that a torch version's local label names (``cpu``, ``cu130``), or None without one."""
    _, _, label = torch_version.partition("+")
    return label.split(".")[0] or None


def _torch_cuda(version: str | None, variant: str | None) -> str | None:
    """``torch.version.cuda`` of a build: cu130 is 13.0, cu118 is 11.8, cpu is none."""
    known = (variant_of(version) if version else None) or variant
    if version is None or known is None or known == "auto":
        return None
    if known.startswith("cu"):
        return f"{known[2:-1]}.{known[-1]}"
    return "" if known == "cpu" else None


def _device_of_lock(spec: StackSpec, lock: PlatformLock) -> Device:
    names = {wheel.name for wheel in lock.wheels}
    variants = {
        framework.variant for framework in spec.frameworks.values() if framework.variant is not None
    } | {variant_of(wheel.version) for wheel in lock.wheels if wheel.name == "torch"}
    cuda_base = isinstance(lock.base, ImageBaseLock) and any(
        str(entry).startswith("CUDA_VERSION=") for entry in _environment(lock.base.config)
    )
    is_cuda = (
        cuda_base
        or any(variant is not None and variant.startswith("cu") for variant in variants)
        or "onnxruntime-gpu" in names
        or any(wheel.group == "cuda" for wheel in lock.wheels)
        or bool(spec.target.gpus)
    )
    return "cuda" if is_cuda else "cpu"


def _environment(config: Mapping[str, Any]) -> list[Any]:
    inner = config.get("config") or config
    return inner.get("Env") or []
