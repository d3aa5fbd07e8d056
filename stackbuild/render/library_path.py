"""Where the CUDA libraries of wheels lie, so that ONNX Runtime finds them (DESIGN §3.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stackbuild.lock.model import LockedWheel

_SUFFIXED = re.compile(r"^nvidia-(?P<library>.+)-cu(?P<major>\d+)$")


def library_folders(wheels: Iterable[LockedWheel], site_packages: str) -> tuple[str, ...]:
    """The folders with the CUDA libraries of a stack that has onnxruntime-gpu; none for another stack.

    ``libonnxruntime_providers_cuda.so`` has no RUNPATH, so it finds its libraries only where the loader looks.
    The wheels for CUDA 11 and 12 have a folder each (nvidia-cublas-cu12: nvidia/cublas/lib); those for CUDA 13
    without a suffix share one (nvidia-cublas 13.0.2: nvidia/cu13/lib).

    Args:
        wheels: The locked wheels.
        site_packages: Their folder in the image, with or without leading slash.

    Returns:
        Absolute paths, sorted.
    """
    locked = list(wheels)
    if not any(wheel.name.startswith("onnxruntime-gpu") for wheel in locked):
        return ()
    folders = set()
    for wheel in locked:
        match = _SUFFIXED.match(wheel.name)
        if match:
            folders.add(match["library"].replace("-", "_"))
        elif wheel.name == "nvidia-cuda-runtime":
            folders.add(f"cu{wheel.version.partition('.')[0]}")
    return tuple(f"/{site_packages.strip('/')}/nvidia/{folder}/lib" for folder in sorted(folders))
