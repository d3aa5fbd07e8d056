"""A simulated host as a small YAML, and as the file of key=value lines that the C libraries read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from ruamel.yaml import YAML

HOSTS = Path(__file__).parent / "hosts"

# What can be wrong with a host:
#   no-driver              no driver is installed; the toolkit is
#   nvml-mismatch          NVML inside containers answers "Driver/library version mismatch"
#   hook-nvml-mismatch     the same, seen already by the hook, which then starts no container
#   uvm-missing            there is no /dev/nvidia-uvm
#   unreadable-device-nodes  the device nodes are root's alone (0600)
#   no-cgroups             the device cgroup stays closed to what the hook brings (no-cgroups = true in the toolkit)
#   stub-libcuda           the libcuda that gets injected is a toolkit's stub
#   wrong-count            one GPU fewer gets injected than was reserved
Failure = Literal[
    "no-driver",
    "nvml-mismatch",
    "hook-nvml-mismatch",
    "uvm-missing",
    "unreadable-device-nodes",
    "no-cgroups",
    "stub-libcuda",
    "wrong-count",
]

# nvmlBrandType_t, nvml.h of NVML 13.
_BRANDS = {
    "unknown": 0,
    "quadro": 1,
    "tesla": 2,
    "nvs": 3,
    "grid": 4,
    "geforce": 5,
    "titan": 6,
    "quadrortx": 12,
    "nvidiartx": 13,
    "nvidia": 14,
    "geforcertx": 15,
    "titanrtx": 16,
}
_NVML_MISMATCH = 18


class _Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )


class MigDevice(_Model):
    """One MIG device of a GPU."""

    profile: str = Field(pattern=r"^[1-7]g\.[0-9]+gb$")
    memory_mib: int = Field(gt=0)
    multiprocessors: int = Field(default=14, gt=0)


class Gpu(_Model):
    """One GPU.

    ``mig`` None: it has no MIG; else its MIG devices. MIG mode is on where it has some, or where
    ``mig-without-devices`` says so.
    """

    name: str
    compute_capability: str = Field(pattern=r"^[0-9]{1,2}\.[0-9]$")
    memory_mib: int = Field(gt=0)
    brand: str
    uuid: str = ""  # made from its index when not given
    multiprocessors: int = Field(default=58, gt=0)
    ecc: bool | None = None
    mig: tuple[MigDevice, ...] | None = None
    mig_without_devices: bool = False
    power_limit_watts: int = 300
    clock_mhz: int = 1500
    throttle_reasons: int = 0  # a mask of nvmlClocksThrottleReasons
    temperature: int = 40

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.brand not in _BRANDS:
            raise ValueError(f"brand is one of {', '.join(_BRANDS)}")
        return self


class SimulatedHost(_Model):
    """A host: its driver, the CUDA level of that driver, its GPUs, and what is wrong with it."""

    driver: str = Field(pattern=r"^[0-9]+(\.[0-9]+){1,2}$")
    cuda: str = Field(pattern=r"^[0-9]+\.[0-9]+$")
    gpus: tuple[Gpu, ...]
    failures: tuple[Failure, ...] = ()
    cu_init: int = 0  # what cuInit gives instead of success, for example 803

    @property
    def cuda_number(self) -> int:
        """The CUDA level as cuDriverGetVersion gives it: 12020 for 12.2."""
        major, minor = self.cuda.split(".")
        return int(major) * 1000 + int(minor) * 10

    def uuid(self, index: int) -> str:
        """The UUID of a GPU."""
        return self.gpus[index].uuid or f"GPU-51300000-0000-4000-8000-{index:012x}"

    def mig_uuid(self, index: int, mig: int) -> str:
        """The UUID of a MIG device."""
        return f"MIG-51300000-0000-4000-9000-{index * 16 + mig:012x}"

    def mig_capability(self, index: int, mig: int) -> int:
        """The minor number of the node below /dev/nvidia-caps that opens a MIG device."""
        return 1 + index * 16 + mig


def load_host(name: str) -> SimulatedHost:
    """The host of a file in ``hosts/``; unknown keys and bad values are errors."""
    return SimulatedHost.model_validate(YAML(typ="safe", pure=True).load(HOSTS / name))


def host_file(host: SimulatedHost) -> str:
    """The file that ``simulated_driver.h`` reads."""
    settings: dict[str, object] = {
        "driver": host.driver,
        "cuda": host.cuda_number,
        "cu-init": host.cu_init or (803 if "nvml-mismatch" in host.failures else 0),
        "nvml-init": _NVML_MISMATCH if "nvml-mismatch" in host.failures else 0,
        "gpus": len(host.gpus),
    }
    for index, gpu in enumerate(host.gpus):
        settings |= {f"gpu.{index}.{key}": value for key, value in _gpu_settings(host, index, gpu).items()}
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _gpu_settings(host: SimulatedHost, index: int, gpu: Gpu) -> dict[str, object]:
    settings: dict[str, object] = {
        "name": gpu.name,
        "uuid": host.uuid(index),
        "compute-capability": gpu.compute_capability,
        "memory": gpu.memory_mib << 20,
        "memory-used": 16 << 20,
        "brand": gpu.brand,
        "brand-code": _BRANDS[gpu.brand],
        "multiprocessors": gpu.multiprocessors,
        "pci": f"00000000:{index + 1:02X}:00.0",
        "ecc": _switch(gpu.ecc),
        "mig-mode": _switch(None if gpu.mig is None else bool(gpu.mig) or gpu.mig_without_devices),
        "mig-devices": len(gpu.mig or ()),
        "power": gpu.power_limit_watts * 200,
        "power-limit": gpu.power_limit_watts * 1000,
        "power-limit-max": gpu.power_limit_watts * 1000,
        "clock": gpu.clock_mhz,
        "clock-max": gpu.clock_mhz,
        "clock-memory": 6000,
        "throttle-reasons": gpu.throttle_reasons,
        "temperature": gpu.temperature,
        "utilization": 0,
    }
    for number, mig in enumerate(gpu.mig or ()):
        settings |= {
            f"mig.{number}.name": f"{gpu.name} MIG {mig.profile}",
            f"mig.{number}.uuid": host.mig_uuid(index, number),
            f"mig.{number}.memory": mig.memory_mib << 20,
            f"mig.{number}.multiprocessors": mig.multiprocessors,
            f"mig.{number}.slices": mig.profile[0],
            f"mig.{number}.gpu-instance": number + 1,
            f"mig.{number}.capability": host.mig_capability(index, number),
        }
    return settings


def _switch(value: bool | None) -> int:
    """What the libraries read of something that is on, off, or not there."""
    return -1 if value is None else int(value)
