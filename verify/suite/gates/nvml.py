"""NVML through ctypes: the driver's own account of itself and of its devices.

Function names and constants: NVML API reference R580 (nvml.h).
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Optional

LIBRARY = "libnvidia-ml.so.1"
TEXT_BYTES = 128
# nvmlBrandType_t.
BRANDS = {
    0: "unknown",
    1: "quadro",
    2: "tesla",
    3: "nvs",
    4: "grid",
    5: "geforce",
    6: "titan",
    7: "nvidiavapps",
    8: "nvidiavpc",
    9: "nvidiavcs",
    10: "nvidiavws",
    11: "nvidiacloudgaming",
    12: "quadrortx",
    13: "nvidiartx",
    14: "nvidia",
    15: "geforcertx",
    16: "titanrtx",
}
CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY = 0, 1, 2


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Initialise NVML and describe every device it shows; takes no options."""
    del options
    result: Dict[str, Any] = {"found": False, "load_error": "", "init": None, "error": "", "devices": []}
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        result["load_error"] = str(error)
        return result
    result["found"] = True
    result["init"] = int(library.nvmlInit_v2())
    if result["init"] != 0:
        result["error"] = _error(library, result["init"])
        return result
    try:
        result["driver"] = _text(library.nvmlSystemGetDriverVersion)
        result["cuda"] = _number(library.nvmlSystemGetCudaDriverVersion_v2)
        # A GPU that is lost after the start still initialises; asking for the devices then fails.
        count = ctypes.c_uint(0)
        status = int(library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        if status != 0:
            result["init"], result["error"] = status, _error(library, status)
            return result
        result["devices"] = [_device(library, index) for index in range(count.value)]
    finally:
        library.nvmlShutdown()
    return result


def _device(library: Any, index: int) -> Dict[str, Any]:
    handle = ctypes.c_void_p()
    status = int(library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)))
    if status != 0:
        return {"index": index, "error": _error(library, status)}
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    capability = None
    if library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) == 0:
        capability = "%d.%d" % (major.value, minor.value)
    memory = _Memory()
    has_memory = library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    mig_now, mig_next = ctypes.c_uint(0), ctypes.c_uint(0)
    has_mig = library.nvmlDeviceGetMigMode(handle, ctypes.byref(mig_now), ctypes.byref(mig_next)) == 0
    ecc_now, ecc_next = ctypes.c_uint(0), ctypes.c_uint(0)
    has_ecc = library.nvmlDeviceGetEccMode(handle, ctypes.byref(ecc_now), ctypes.byref(ecc_next)) == 0
    brand = _number(library.nvmlDeviceGetBrand, handle)
    return {
        "index": index,
        "name": _text(library.nvmlDeviceGetName, handle),
        "uuid": _text(library.nvmlDeviceGetUUID, handle),
        "compute_capability": capability,
        "memory_bytes": memory.total if has_memory else None,
        "memory_used_bytes": memory.used if has_memory else None,
        "brand": BRANDS.get(brand, "") if brand is not None else "",
        "mig": bool(mig_now.value) if has_mig else None,
        "mig_devices": _mig_devices(library, handle) if has_mig and mig_now.value else [],
        "ecc": bool(ecc_now.value) if has_ecc else None,
        **_state(library, handle),
    }


def _state(library: Any, handle: Any) -> Dict[str, Any]:
    """Power, clocks and throttling: evidence for the numbers measured beside it."""
    return {
        "persistence": _number(library.nvmlDeviceGetPersistenceMode, handle),
        "performance_state": _number(library.nvmlDeviceGetPerformanceState, handle),
        "power_milliwatts": _number(library.nvmlDeviceGetPowerUsage, handle),
        "power_limit_milliwatts": _number(library.nvmlDeviceGetEnforcedPowerLimit, handle),
        "throttle_reasons": _number(
            library.nvmlDeviceGetCurrentClocksThrottleReasons, handle, kind=ctypes.c_ulonglong
        ),
        "clock_mhz": {
            name: _clock(library.nvmlDeviceGetClockInfo, handle, kind)
            for name, kind in (("graphics", CLOCK_GRAPHICS), ("sm", CLOCK_SM), ("memory", CLOCK_MEMORY))
        },
        "max_clock_mhz": {
            name: _clock(library.nvmlDeviceGetMaxClockInfo, handle, kind)
            for name, kind in (("graphics", CLOCK_GRAPHICS), ("sm", CLOCK_SM), ("memory", CLOCK_MEMORY))
        },
    }


def _mig_devices(library: Any, handle: Any) -> List[Dict[str, Any]]:
    most = _number(library.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    found = []
    for index in range(most):
        device = ctypes.c_void_p()
        if library.nvmlDeviceGetMigDeviceHandleByIndex(handle, index, ctypes.byref(device)) == 0:
            found.append(
                {
                    "uuid": _text(library.nvmlDeviceGetUUID, device),
                    "name": _text(library.nvmlDeviceGetName, device),
                }
            )
    return found


def _text(call: Callable[..., int], *handle: Any) -> Optional[str]:
    buffer = ctypes.create_string_buffer(TEXT_BYTES)
    status = call(*handle, buffer, TEXT_BYTES)
    return buffer.value.decode("utf-8", "replace") if status == 0 else None


def _number(call: Callable[..., int], *handle: Any, kind: Any = ctypes.c_uint) -> Optional[int]:
    value = kind(0)
    return int(value.value) if call(*handle, ctypes.byref(value)) == 0 else None


def _clock(call: Callable[..., int], handle: Any, kind: int) -> Optional[int]:
    value = ctypes.c_uint(0)
    return int(value.value) if call(handle, kind, ctypes.byref(value)) == 0 else None


def _error(library: Any, status: int) -> str:
    library.nvmlErrorString.restype = ctypes.c_char_p
    text = library.nvmlErrorString(status)
    return text.decode("utf-8", "replace") if text else "error %d" % status
