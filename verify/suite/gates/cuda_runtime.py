"""The CUDA runtimes in the image: every libcudart there is, loaded and asked for its version.

Function names: CUDA Runtime API 13.0, "Version Management" and "Device Management".
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

from suite.process_maps import mapped_libraries

MAJORS = (11, 12, 13, 14)
# Up to CUDA 10 the file name has the minor version too; nothing that reaches us still has one.
SONAME = re.compile(r"libcudart\.so\.(\d+)$")


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Load each libcudart that the loader or a wheel has; takes no options.

    Each is asked for its own version, for the driver's, and for the number of devices; an error code
    is kept as it is.
    """
    del options
    runtimes: List[Dict[str, Any]] = []
    seen = set()
    for source, path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue  # not there: most majors are not
        found = _mapped(path)
        if found in seen:
            continue
        seen.add(found)
        runtimes.append({"found_by": source, "file": found, **_ask(library)})
    return {"runtimes": runtimes}


def _ask(library: Any) -> Dict[str, Any]:
    runtime, driver, count = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
    library.cudaRuntimeGetVersion(ctypes.byref(runtime))
    library.cudaDriverGetVersion(ctypes.byref(driver))
    status = int(library.cudaGetDeviceCount(ctypes.byref(count)))
    return {
        "version": runtime.value,
        "driver_version": driver.value,
        "devices": count.value if status == 0 else None,
        "status": status,
    }


def _candidates() -> List[Tuple[str, str]]:
    loader = [("loader", "libcudart.so.%d" % major) for major in MAJORS]
    wheels = []
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower()
        if name.startswith("nvidia-cuda-runtime"):
            for line in (distribution.read_text("RECORD") or "").splitlines():
                file = line.rsplit(",", 2)[0].strip('"')
                if SONAME.search(file):
                    wheels.append((name, str(distribution.locate_file(file))))
    # The loader's first: a name without a path would be answered with the wheel's file once that is loaded.
    return loader + wheels


def _mapped(path: str) -> str:
    """The file behind a name that was just loaded; a full path is its own answer."""
    if path.startswith("/"):
        return os.path.realpath(path)
    return next(
        (os.path.realpath(found) for found in mapped_libraries() if Path(found).name.startswith(path)),
        path,
    )
