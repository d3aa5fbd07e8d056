"""What the suite measures on a host with GPUs, made from a few words."""

from __future__ import annotations

from typing import Any

from stackbuild.verification.model import GateResult
from tests.verification.support import measured

L4 = {"name": "NVIDIA L4", "compute_capability": "8.9", "memory_bytes": 23034 << 20, "brand": "nvidia"}
RTX_4090 = {
    "name": "NVIDIA GeForce RTX 4090",
    "compute_capability": "8.9",
    "memory_bytes": 24564 << 20,
    "brand": "geforce",
}


def uuid(number: int) -> str:
    return f"51300000-0000-4000-8000-{number:012d}"


def gpu_results(
    driver: str = "580.95.05",
    cuda: int = 13000,
    *,
    gpus: tuple[dict[str, Any], ...] = (L4,),
    file: str = "",
    init: int = 0,
    environment: dict[str, str] | None = None,
) -> dict[str, GateResult]:
    """The results of the reach gates on a host where all is well, but for what is changed."""
    devices = [
        {"ordinal": number, "uuid": uuid(number), **{key: gpu[key] for key in gpu if key != "brand"}}
        for number, gpu in enumerate(gpus)
    ]
    nvml = [
        {"index": number, "mig": None, "mig_devices": [], **gpu, "uuid": f"GPU-{uuid(number)}"}
        for number, gpu in enumerate(gpus)
    ]
    results = [
        device_nodes(len(gpus)),
        measured(
            "cuda-driver",
            found=True,
            load_error="",
            file=file or f"/usr/lib/x86_64-linux-gnu/libcuda.so.{driver}",
            compat_files=[],
            init=init,
            version=cuda,
            devices=devices if init == 0 else [],
        ),
        measured("nvml", found=True, load_error="", init=0, error="", driver=driver, cuda=cuda, devices=nvml),
        measured("cuda-runtime", runtimes=[]),
        measured("interpreter", environment=environment or {}, kernel="6.1"),
    ]
    return {result.name: result for result in results}


def device_nodes(gpus: int = 1, *, refused: str | None = None, mode: str = "0666") -> GateResult:
    """The measurement of ``device-nodes``."""
    names = ["nvidiactl", "nvidia-uvm", *(f"nvidia{number}" for number in range(gpus))]
    nodes = [
        {
            "path": f"/dev/{name}",
            "device": True,
            "major": 195,
            "minor": 0,
            "mode": mode,
            "uid": 0,
            "gid": 44,
            "refused": refused,
        }
        for name in names
    ]
    return measured("device-nodes", nodes=nodes, uid=1234, groups=[1234], kernel_driver="")


def changed(results: dict[str, GateResult], name: str, **values: Any) -> dict[str, GateResult]:
    """The results with some measurements of one gate changed."""
    return {**results, name: measured(name, **{**results[name].measured, **values})}
