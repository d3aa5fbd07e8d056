"""Which shared libraries this process has really mapped, by /proc/self/maps."""

from __future__ import annotations

from pathlib import Path
from typing import List, Tuple

MAPS = Path("/proc/self/maps")
# Of the driver and of CUDA's user-space libraries; any other library is nobody's question here.
CUDA_LIBRARIES: Tuple[str, ...] = (
    "libcuda.so",
    "libnvidia-ml.so",
    "libcudart.so",
    "libcublas.so",
    "libcublasLt.so",
    "libcudnn",
    "libnccl.so",
    "libcufft.so",
    "libcurand.so",
    "libcusolver.so",
    "libcusparse.so",
    "libcusparseLt.so",
    "libnvrtc.so",
    "libnvJitLink.so",
    "libnvinfer",
)


def mapped_libraries() -> List[str]:
    """Paths of all CUDA and driver libraries mapped now, each once, in name order."""
    paths = set()
    for line in MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5].rsplit("/", 1)[-1].startswith(CUDA_LIBRARIES):
            paths.add(fields[5].strip())
    return sorted(paths)
