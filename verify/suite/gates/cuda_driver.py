"""libcuda through ctypes: which file the loader finds, cuInit, and the devices that the driver shows.

Function names and constants: CUDA Driver API 13.0, modules "Initialization", "Version Management" and
"Device Management" (CUdevice_attribute in cuda.h).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import uuid
from pathlib import Path
from typing import Any, Dict, List, Optional

from suite.process_maps import mapped_libraries

LIBRARY = "libcuda.so.1"
NAME_BYTES = 256
CAPABILITY_MAJOR, CAPABILITY_MINOR, MULTIPROCESSORS = 75, 76, 16
# Where images keep a libcuda of their own: cuda-compat for older drivers, stubs for linking.
OWN_LIBRARIES = ("usr/local/cuda*/compat/libcuda.so.*", "usr/local/cuda*/compat/lib.real/libcuda.so.*")


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Load libcuda as CUDA programs do and ask it for its devices; takes no options."""
    del options
    result: Dict[str, Any] = {
        "found": False,
        "load_error": "",
        "file": "",
        "compat_files": _compat_files(),
        "init": None,
        "version": None,
        "devices": [],
    }
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        result["load_error"] = str(error)
        return result
    result["found"] = True
    result["file"] = next(
        (os.path.realpath(path) for path in mapped_libraries() if "/libcuda.so" in path), ""
    )
    result["init"] = int(library.cuInit(0))
    version = ctypes.c_int(0)
    if library.cuDriverGetVersion(ctypes.byref(version)) == 0:
        result["version"] = version.value
    if result["init"] == 0:
        result["devices"] = _devices(library)
    return result


def _devices(library: Any) -> List[Dict[str, Any]]:
    count = ctypes.c_int(0)
    if library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    return [_device(library, ordinal) for ordinal in range(count.value)]


def _device(library: Any, ordinal: int) -> Dict[str, Any]:
    handle = ctypes.c_int(0)
    status = int(library.cuDeviceGet(ctypes.byref(handle), ordinal))
    if status != 0:
        return {"ordinal": ordinal, "error": status}
    name = ctypes.create_string_buffer(NAME_BYTES)
    library.cuDeviceGetName(name, NAME_BYTES, handle)
    memory = ctypes.c_size_t(0)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    return {
        "ordinal": ordinal,
        "name": name.value.decode("utf-8", "replace"),
        "compute_capability": "%s.%s"
        % (
            _attribute(library, handle, CAPABILITY_MAJOR),
            _attribute(library, handle, CAPABILITY_MINOR),
        ),
        "memory_bytes": memory.value,
        "multiprocessors": _attribute(library, handle, MULTIPROCESSORS),
        "uuid": _uuid(library, handle),
    }


def _attribute(library: Any, handle: Any, attribute: int) -> Optional[int]:
    value = ctypes.c_int(0)
    status = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
    return value.value if status == 0 else None


def _uuid(library: Any, handle: Any) -> str:
    """``GPU-…`` or, for a slice of one, ``MIG-…`` is NVML's spelling; CUDA gives the bytes alone."""
    raw = (ctypes.c_ubyte * 16)()
    # The second version exists since CUDA 11.4; it names the MIG device, not its GPU.
    call = getattr(library, "cuDeviceGetUuid_v2", None) or getattr(library, "cuDeviceGetUuid", None)
    if call is None or call(raw, handle) != 0:
        return ""
    return str(uuid.UUID(bytes=bytes(raw)))


def _compat_files() -> List[str]:
    found = {str(path.resolve()) for pattern in OWN_LIBRARIES for path in Path("/").glob(pattern)}
    return sorted(found)
