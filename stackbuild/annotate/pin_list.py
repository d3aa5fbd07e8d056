"""The pin list: what an image stands for, read from its spec and lock."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from packaging.version import Version
from pydantic import ConfigDict, Field

from stackbuild.facts.tables import Facts
from stackbuild.frozen_model import FrozenModel
from stackbuild.image_environment import environment_of
from stackbuild.lock.model import ImageBaseLock, LockedWheel, PlatformLock
from stackbuild.spec.model import StackSpec


class PinModel(FrozenModel):
    """Base of the models inside the label: keys of later versions are ignored."""

    model_config = ConfigDict(extra="ignore")


class DriverFloor(PinModel):
    """The oldest NVIDIA driver with which the CUDA major works at all (minor-version compatibility)."""

    version: str = Field(description="driver version, for example 525.60.13")
    cuda_major: int
    source: str = Field(description="the document that says so")


class BasePin(PinModel):
    """What the image begins with."""

    name: str = Field(description="repository and tag, or the bootstrapped distribution and suite")
    digest: str = Field(description="index digest; of a bootstrapped base the diff ID of its file system")


class PinList(PinModel):
    """What an image stands for. What it does not have is None or empty."""

    stack: str
    os: str = Field(description="ID and VERSION_ID of os-release, for example ubuntu 24.04")
    base: BasePin
    glibc: str
    python: str | None = Field(default=None, description="full version")
    driver_floor: DriverFloor | None = None
    cuda: str | None = Field(default=None, description="runtime in the image, major.minor or finer")
    cudnn: str | None = None
    nccl: str | None = None
    torch: str | None = Field(default=None, description="public version, without local label")
    torch_variant: str | None = Field(default=None, description="cpu, cu126, …")
    onnxruntime: str | None = None
    onnxruntime_package: str | None = Field(default=None, description="onnxruntime or onnxruntime-gpu")
    tensorrt: str | None = None
    compute_capabilities: Mapping[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="by framework, where measured: sm_XY binaries and compute_XY intermediate code",
    )
    lock_sha256: str = Field(description="sha256 of the lock file's bytes")
    files_sha256: str = Field(default="", description="hash of the spec's files; empty when it has none")
    image_sha256: str | None = Field(
        default=None,
        description="hash of what the spec says of the image itself: environment, command, user, labels",
    )


def pin_list(spec: StackSpec, platform_lock: PlatformLock, files_hash: str, *, lock_sha256: str) -> PinList:
    """Read the pin list from a spec and its lock.

    Args:
        spec: The stack.
        platform_lock: One platform's inputs.
        files_hash: sha256, in hex, of the files layer's content; empty without one.
        lock_sha256: sha256, in hex, of the lock file's bytes.
    """
    wheels = {wheel.name: wheel for wheel in platform_lock.wheels}
    environment = _base_environment(platform_lock)
    torch = wheels.get("torch")
    variant = _torch_variant(spec, torch)
    onnxruntime = wheels.get("onnxruntime-gpu") or wheels.get("onnxruntime")
    cuda = _cuda(wheels, variant, environment)
    return PinList(
        stack=spec.name,
        os=f"{platform_lock.os.id} {platform_lock.os.version_id}".strip(),
        base=_base(platform_lock),
        glibc=platform_lock.os.glibc,
        python=platform_lock.python.version if platform_lock.python else None,
        driver_floor=_driver_floor(cuda),
        cuda=cuda,
        cudnn=_wheel_version(wheels, r"nvidia-cudnn(-cu\d+)?") or environment.get("NV_CUDNN_VERSION"),
        nccl=_wheel_version(wheels, r"nvidia-nccl(-cu\d+)?") or environment.get("NCCL_VERSION"),
        torch=Version(torch.version).public if torch else None,
        torch_variant=variant,
        onnxruntime=onnxruntime.version if onnxruntime else None,
        onnxruntime_package=onnxruntime.name if onnxruntime else None,
        tensorrt=_wheel_version(wheels, r"tensorrt(-cu\d+)?(-libs)?"),
        compute_capabilities=_compute_capabilities(torch, variant, wheels.get("onnxruntime-gpu")),
        lock_sha256=lock_sha256,
        files_sha256=files_hash,
        image_sha256=_image_sha256(spec),
    )


def _image_sha256(spec: StackSpec) -> str | None:
    """sha256, in hex, over what goes from the spec into the image and into no lock; None where it says nothing."""
    stated = spec.image.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if spec.summary:
        stated["summary"] = spec.summary
    if not stated:
        return None
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def _base(platform_lock: PlatformLock) -> BasePin:
    base = platform_lock.base
    if isinstance(base, ImageBaseLock):
        return BasePin(name=f"{base.image}:{base.tag}", digest=base.index_digest)
    return BasePin(name=f"bootstrap {base.distribution} {base.suite}", digest=base.diff_id)


def _base_environment(platform_lock: PlatformLock) -> dict[str, str]:
    base = platform_lock.base
    return environment_of(base.config) if isinstance(base, ImageBaseLock) else {}


def _wheel_version(wheels: Mapping[str, LockedWheel], pattern: str) -> str | None:
    # CUDA 13 wheels dropped the suffix from some names, so both spellings are looked for.
    for name in sorted(wheels):
        if re.fullmatch(pattern, name):
            return wheels[name].version
    return None


def _torch_variant(spec: StackSpec, torch: LockedWheel | None) -> str | None:
    if torch is None:
        return None
    framework = spec.frameworks.get("torch")
    if "+" not in torch.version and framework is not None and framework.variant not in (None, "auto"):
        return framework.variant
    machine = "aarch64" if "aarch64" in torch.file else "x86_64"
    # In the spelling that versions have (2.9.1+git_abc is 2.9.1+git.abc): tags hold the variant.
    return Facts().torch_variant_of(str(Version(torch.version)), machine)


def _cuda(
    wheels: Mapping[str, LockedWheel], variant: str | None, environment: Mapping[str, str]
) -> str | None:
    """The runtime that gets loaded: the wheels' own, else the one torch was built for, else the base's."""
    runtime = _wheel_version(wheels, r"nvidia-cuda-runtime(-cu\d+)?")
    if runtime:
        return runtime
    match = re.fullmatch(r"cu(\d{2})(\d)", variant or "")
    return f"{match[1]}.{match[2]}" if match else environment.get("CUDA_VERSION")


def _driver_floor(cuda: str | None) -> DriverFloor | None:
    major = int(cuda.split(".")[0]) if cuda and cuda.split(".")[0].isdigit() else None
    floor = Facts().minor_version_floor(major) if major is not None else None
    if floor is None:
        return None
    return DriverFloor(
        version=floor.min_driver, cuda_major=floor.cuda_major, source=floor.source[0].split(",")[0]
    )


def _compute_capabilities(
    torch: LockedWheel | None, variant: str | None, onnxruntime_gpu: LockedWheel | None
) -> dict[str, tuple[str, ...]]:
    facts = Facts()
    known: dict[str, tuple[str, ...]] = {}
    build = facts.torch_variant(Version(torch.version).public, variant) if torch and variant else None
    if build is not None and build.sm:
        known["torch"] = (*build.sm, *build.ptx)
    release = facts.onnxruntime_release(onnxruntime_gpu.version) if onnxruntime_gpu else None
    if release is not None and release.sm:
        known["onnxruntime-gpu"] = (*release.sm, *(release.ptx or ()))
    return known
