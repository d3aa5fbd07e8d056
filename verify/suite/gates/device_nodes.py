"""NVIDIA's device nodes, and whether the image's user may open them."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, Dict, List

DEVICES = Path("/dev")
# /dev/nvidiactl, /dev/nvidia-uvm and one /dev/nvidiaN for each GPU; on WSL2 it is /dev/dxg alone.
PATTERNS = ("nvidia*", "nvidia-caps/*", "dxg")
DRIVER_VERSION = Path("/proc/driver/nvidia/version")


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """List the nodes with owner, mode and what opening each one says; takes no options."""
    del options
    return {
        "nodes": [_describe(path) for path in _nodes()],
        "uid": os.getuid(),
        "groups": sorted({os.getgid(), *os.getgroups()}),
        "kernel_driver": _kernel_driver(),
    }


def _nodes() -> List[Path]:
    found = {path for pattern in PATTERNS for path in DEVICES.glob(pattern)}
    return sorted(path for path in found if not path.is_dir())


def _describe(path: Path) -> Dict[str, Any]:
    state = path.stat()
    described: Dict[str, Any] = {
        "path": str(path),
        "device": stat.S_ISCHR(state.st_mode),
        "major": os.major(state.st_rdev),
        "minor": os.minor(state.st_rdev),
        "mode": format(stat.S_IMODE(state.st_mode), "04o"),
        "uid": state.st_uid,
        "gid": state.st_gid,
        "refused": None,
    }
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        described["refused"] = errno.errorcode.get(error.errno or 0, str(error.errno))
    return described


def _kernel_driver() -> str:
    """The first line of the kernel module's own version file; empty when it is not there."""
    try:
        lines = DRIVER_VERSION.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[0] if lines else ""
