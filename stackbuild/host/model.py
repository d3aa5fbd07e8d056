"""A host's compatibility card as frozen models: what ``stackbuild host`` prints and ``check`` takes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stackbuild.frozen_model import FrozenModel

InjectionMode = Literal["legacy", "cdi", "jit-cdi", "csv", "none"]
Posture = Literal["linux", "wsl2", "windows", "macos", "amd"]


class HostGpu(FrozenModel):
    """One GPU of a host."""

    name: str = Field(description="as the driver names it, for example NVIDIA L40S")
    compute_capability: str | None = Field(default=None, pattern=r"^[0-9]{1,2}\.[0-9]$")
    memory_mib: int | None = Field(default=None, ge=0)
    uuid: str | None = None
    brand: str | None = Field(
        default=None, description="NVML's brand in lower case: tesla, geforce, quadro, …"
    )
    mig: bool | None = Field(default=None, description="whether MIG mode is on")
    ecc: bool | None = Field(default=None, description="whether ECC is on")
    driver_model: Literal["wddm", "tcc", "mcdm"] | None = Field(default=None, description="Windows only")


class Host(FrozenModel):
    """One host, as inventoried, pasted or written by hand. None means unknown."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: str = "host"
    posture: Posture = "linux"
    os: str | None = Field(default=None, description="for example Ubuntu 24.04.3 LTS")
    kernel: str | None = None
    machine: str | None = Field(default=None, description="x86_64, aarch64, arm64, …")
    glibc: str | None = None
    firmware: str | None = None
    cpu: str | None = None
    compiler: str | None = None
    python: str | None = None
    driver: str | None = Field(
        default=None, pattern=r"^[0-9]+(\.[0-9]+){0,2}$", description="kernel-mode driver version"
    )
    driver_source: str | None = Field(
        default=None, description="which source answered: nvml, proc, nvidia-smi, …"
    )
    driver_branch: str | None = Field(default=None, description="for example R535 LTSB")
    driver_end_of_life: str | None = Field(
        default=None, pattern=r"^[0-9]{4}-[0-9]{2}$", description="the branch's last month, from the facts"
    )
    driver_flavor: Literal["datacenter", "game-ready", "studio", "open", "proprietary"] | None = None
    max_cuda: str | None = Field(
        default=None, pattern=r"^[0-9]+\.[0-9]+$", description="the driver's CUDA maximum"
    )
    max_cuda_source: str | None = None
    gpus: tuple[HostGpu, ...] = ()
    toolkit: str | None = Field(default=None, description="NVIDIA Container Toolkit version")
    injection: InjectionMode | None = Field(default=None, description="how devices reach a container")
    docker: str | None = Field(default=None, description="engine version")
    runtimes: tuple[str, ...] = ()
    nvcc: str | None = None
    profilers: dict[str, str] = Field(default_factory=dict)
    torch: str | None = None
    onnxruntime: str | None = None
    tier: int | None = Field(default=None, ge=1, le=5)
    tier_reason: str | None = Field(default=None, description="what keeps it from the next tier")
    notes: tuple[str, ...] = ()
