"""Who runs the suite, and on what: interpreter, operating system, user, environment."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any, Dict, Optional

OS_RELEASE = Path("/etc/os-release")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - measured, not written
# Variables that decide which libraries and devices a framework finds, and what the image asks of a driver.
TELLING_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME")
TELLING_PREFIXES = ("CUDA_", "NVIDIA_", "NV_CUDA_", "TORCH_", "NCCL_", "OMP_")


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Measure the interpreter and its surroundings; takes no options."""
    del options
    return {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "machine": platform.machine(),
        "kernel": platform.release(),
        "glibc": _glibc(),
        "os": _os_release(),
        "uid": os.getuid(),
        "gid": os.getgid(),
        "shm_bytes": _shared_memory(),
        "environment": {
            name: value
            for name, value in os.environ.items()
            if name in TELLING_VARIABLES or name.startswith(TELLING_PREFIXES)
        },
    }


def _glibc() -> Optional[str]:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):  # another C library, such as musl
        return None
    return version if name == "glibc" else None


def _os_release() -> Dict[str, str]:
    if not OS_RELEASE.exists():
        return {}
    fields = {}
    for line in OS_RELEASE.read_text(encoding="utf-8", errors="replace").splitlines():
        name, separator, value = line.partition("=")
        if separator:
            fields[name.strip()] = value.strip().strip("\"'")
    return fields


def _shared_memory() -> Optional[int]:
    if not Path(SHARED_MEMORY).is_dir():
        return None
    state = os.statvfs(SHARED_MEMORY)
    return state.f_blocks * state.f_frsize
