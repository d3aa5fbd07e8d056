"""What a container sees of its GPUs, asked as programs do: the CUDA driver through ctypes, NVML through pynvml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.engine.models import DeviceRequest

_SCRIPT = """
import ctypes, json, os

def cuda():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"error": str(error)}
    number, name, size = ctypes.c_int(), ctypes.c_char_p(), ctypes.c_size_t()
    init = driver.cuInit(0)
    driver.cuGetErrorName(init, ctypes.byref(name))
    found = {"init": init, "name": (name.value or b"").decode()}
    if driver.cuDriverGetVersion(ctypes.byref(number)) == 0:
        found["version"] = number.value
    if init:
        return found
    driver.cuDeviceGetCount(ctypes.byref(number))
    found["devices"] = []
    for index in range(number.value):
        text, uuid, context = ctypes.create_string_buffer(96), ctypes.create_string_buffer(16), ctypes.c_void_p()
        free, capability = ctypes.c_size_t(), []
        assert driver.cuDeviceGetName(text, 96, index) == 0
        assert driver.cuDeviceTotalMem_v2(ctypes.byref(size), index) == 0
        assert driver.cuDeviceGetUuid_v2(uuid, index) == 0
        for attribute in (75, 76, 16):
            assert driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, index) == 0
            capability.append(number.value)
        assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(size)) == (201 if index == 0 else 0)
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), index) == 0
        assert driver.cuCtxSetCurrent(context) == 0
        assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(size)) == 0
        assert driver.cuDevicePrimaryCtxRelease_v2(index) == 0
        found["devices"].append({"name": text.value.decode(), "memory": size.value, "uuid": uuid.raw.hex(),
                                 "capability": capability[:2], "multiprocessors": capability[2],
                                 "free": free.value})
    return found

def nvml():
    import pynvml as n
    try:
        n.nvmlInit()
    except n.NVMLError as error:
        return {"error": error.value}  # the code: pynvml words some in its own way
    devices = []
    for index in range(n.nvmlDeviceGetCount()):
        handle = n.nvmlDeviceGetHandleByIndex(index)
        uuid = n.nvmlDeviceGetUUID(handle)
        assert n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(uuid)) == uuid
        device = {"name": n.nvmlDeviceGetName(handle), "uuid": uuid,
                  "memory": n.nvmlDeviceGetMemoryInfo(handle).total,
                  "memory-v2": n.nvmlDeviceGetMemoryInfo(handle, version=n.nvmlMemory_v2).total,
                  "capability": list(n.nvmlDeviceGetCudaComputeCapability(handle)),
                  "brand": n.nvmlDeviceGetBrand(handle), "minor": n.nvmlDeviceGetMinorNumber(handle),
                  "bus": n.nvmlDeviceGetPciInfo(handle).busId,
                  "power-limit": n.nvmlDeviceGetPowerManagementLimit(handle),
                  "clock": n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM),
                  "throttle": n.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
                  "temperature": n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU)}
        for key, ask in (("ecc", n.nvmlDeviceGetEccMode), ("mig", n.nvmlDeviceGetMigMode)):
            try:
                device[key] = ask(handle)[0]
            except n.NVMLError_NotSupported:
                device[key] = None
        device["mig-devices"] = []
        for number in range(n.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                mig = n.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
            except n.NVMLError_NotFound:
                continue
            assert n.nvmlDeviceIsMigDeviceHandle(mig)
            attributes = n.nvmlDeviceGetAttributes_v2(mig)
            device["mig-devices"].append({"name": n.nvmlDeviceGetName(mig), "uuid": n.nvmlDeviceGetUUID(mig),
                                          "multiprocessors": attributes.multiprocessorCount,
                                          "memory-mib": attributes.memorySizeMB})
        devices.append(device)
    found = {"driver": n.nvmlSystemGetDriverVersion(), "cuda": n.nvmlSystemGetCudaDriverVersion(),
             "nvml": n.nvmlSystemGetNVMLVersion(), "devices": devices}
    n.nvmlShutdown()
    return found

nodes = {name: oct(os.stat("/dev/" + name).st_mode & 0o777) for name in os.listdir("/dev") if "nvidia" in name}
nodes.pop("nvidia-caps", None)
print(json.dumps({"cuda": cuda(), "nvml": nvml(), "nodes": nodes}))
"""


@dataclass(frozen=True)
class Seen:
    """What a container saw: ``cuda`` and ``nvml`` as the script above words them, node names with their modes."""

    cuda: dict[str, Any]
    nvml: dict[str, Any]
    nodes: dict[str, str]


def look(
    engine: Engine,
    image: str,
    *requests: DeviceRequest,
    environment: Mapping[str, str] | None = None,
    user: str | None = None,
    runtime: str | None = None,
) -> Seen:
    """Run a container with these device requests and say what it saw; errors of its start pass through."""
    with engine.container(
        image,
        ["python3", "-c", _SCRIPT],
        device_requests=requests,
        environment=environment,
        user=user,
        runtime=runtime,
    ) as container:
        container.start()
        code, log = container.wait(300), container.logs().decode()
    assert code == 0, log
    return Seen(**json.loads(log))
