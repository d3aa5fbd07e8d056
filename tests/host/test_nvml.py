"""What is made of NVML's answers; the errors are NVML's own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from stackbuild.host.model import HostGpu
from stackbuild.host.nvml import read_nvml


def _raise(code: int) -> Callable[..., Any]:
    def answer(*_: object) -> None:
        raise pynvml.NVMLError(code)

    return answer


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A driver with one H100 whose answers can be replaced one by one."""

    def answers(**changed: Callable[..., Any]) -> None:
        normal: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: "535.183.01",
            "nvmlSystemGetCudaDriverVersion_v2": lambda: 12020,
            "nvmlDeviceGetCount": lambda: 1,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetName": lambda _: "NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=81559 << 20),
            "nvmlDeviceGetBrand": lambda _: pynvml.NVML_BRAND_NVIDIA,
            "nvmlDeviceGetUUID": lambda _: "GPU-0",
            "nvmlDeviceGetMigMode": lambda _: [1, 1],
            "nvmlDeviceGetEccMode": lambda _: [0, 1],
            "nvmlDeviceGetCurrentDriverModel": _raise(pynvml.NVML_ERROR_NOT_SUPPORTED),
        }
        for name, answer in {**normal, **changed}.items():
            monkeypatch.setattr(pynvml, name, answer)

    return answers


def test_a_driver_and_its_gpu(library: Callable[..., None]) -> None:
    library()
    answer = read_nvml()
    assert (answer.driver, answer.cuda, answer.problem) == ("535.183.01", "12.2", "")
    assert answer.gpus == (
        HostGpu(
            name="NVIDIA H100 80GB HBM3",
            compute_capability="9.0",
            memory_mib=81559,
            uuid="GPU-0",
            brand="nvidia",
            mig=True,
            ecc=False,
        ),
    )


def test_what_a_gpu_does_not_answer_stays_unknown(library: Callable[..., None]) -> None:
    unsupported = _raise(pynvml.NVML_ERROR_NOT_SUPPORTED)
    library(
        nvmlDeviceGetMigMode=unsupported,
        nvmlDeviceGetEccMode=unsupported,
        nvmlDeviceGetMemoryInfo=unsupported,
    )
    (gpu,) = read_nvml().gpus
    assert (gpu.mig, gpu.ecc, gpu.memory_mib, gpu.compute_capability) == (None, None, None, "9.0")


def test_a_lost_gpu_is_told_and_the_others_stay(library: Callable[..., None]) -> None:
    def handle(index: int) -> int:
        return index if index != 1 else _raise(pynvml.NVML_ERROR_GPU_IS_LOST)()

    library(nvmlDeviceGetCount=lambda: 3, nvmlDeviceGetHandleByIndex=handle)
    answer = read_nvml()
    assert len(answer.gpus) == 2
    assert answer.problem == "GPU 1 does not answer and is left out"


@pytest.mark.parametrize(
    ("code", "absent", "problem"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, True, "there is no NVML library"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, False, "NVML does not start: Driver Not Loaded"),
        (pynvml.NVML_ERROR_NO_PERMISSION, False, "NVML does not start: Insufficient Permissions"),
    ],
)
def test_a_library_that_does_not_start(
    library: Callable[..., None], code: int, absent: bool, problem: str
) -> None:
    library(nvmlInit=_raise(code))
    answer = read_nvml()
    assert (answer.driver, answer.absent, answer.problem) == (None, absent, problem)
