"""What NVML, the driver's management library, says of the driver and its GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from stackbuild.host.model import HostGpu

T = TypeVar("T")

_BRANDS = (
    "QUADRO",
    "TESLA",
    "NVS",
    "GRID",
    "GEFORCE",
    "TITAN",
    "QUADRO_RTX",
    "NVIDIA_RTX",
    "NVIDIA",
    "GEFORCE_RTX",
    "TITAN_RTX",
)


@dataclass(frozen=True, slots=True)
class NvmlAnswer:
    """What NVML said.

    Attributes:
        driver: The kernel-mode driver's version; None when NVML did not answer.
        cuda: The driver's CUDA maximum; None when it did not say.
        gpus: In NVML's order.
        problem: Why there is no answer, as a clause; empty when there is one.
        absent: True when there is no NVML at all: the plain case of a machine without a driver.
    """

    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[HostGpu, ...] = ()
    problem: str = ""
    absent: bool = False


def read_nvml() -> NvmlAnswer:
    """Ask NVML; what one GPU does not answer stays None."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return NvmlAnswer(problem="there is no NVML library", absent=True)
    except pynvml.NVMLError as error:
        return NvmlAnswer(problem=f"NVML does not start: {error}")
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        level = _asked(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)
        count = _asked(pynvml, pynvml.nvmlDeviceGetCount) or 0
        gpus = [_asked(pynvml, partial(_gpu, pynvml, index)) for index in range(count)]
        lost = [str(index) for index, gpu in enumerate(gpus) if gpu is None]
        return NvmlAnswer(
            driver,
            f"{level // 1000}.{level % 1000 // 10}" if level else None,
            tuple(gpu for gpu in gpus if gpu is not None),
            f"GPU {', '.join(lost)} does not answer and is left out" if lost else "",
        )
    except pynvml.NVMLError as error:
        return NvmlAnswer(problem=f"NVML does not answer: {error}")
    finally:
        _asked(pynvml, pynvml.nvmlShutdown)


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _asked(pynvml: Any, question: Callable[[], T]) -> T | None:
    """The answer, or None where this driver or GPU has none."""
    try:
        return question()
    except pynvml.NVMLError:
        return None


def _gpu(pynvml: Any, index: int) -> HostGpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    capability = _asked(pynvml, lambda: pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    memory = _asked(pynvml, lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    brand = _asked(pynvml, lambda: pynvml.nvmlDeviceGetBrand(handle))
    uuid = _asked(pynvml, lambda: pynvml.nvmlDeviceGetUUID(handle))
    mig = _asked(pynvml, lambda: pynvml.nvmlDeviceGetMigMode(handle))
    ecc = _asked(pynvml, lambda: pynvml.nvmlDeviceGetEccMode(handle))
    model = _asked(pynvml, lambda: pynvml.nvmlDeviceGetCurrentDriverModel(handle))
    names = {getattr(pynvml, f"NVML_BRAND_{name}", None): name.lower().replace("_", "") for name in _BRANDS}
    return HostGpu(
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory_mib=memory.total >> 20 if memory else None,
        uuid=_text(uuid) if uuid else None,
        brand=names.get(brand) if brand is not None else None,
        mig=mig[0] == 1 if mig else None,
        ecc=ecc[0] == 1 if ecc else None,
        driver_model={0: "wddm", 1: "tcc", 2: "mcdm"}.get(model) if model is not None else None,
    )
