"""The CUDA libraries that onnxruntime-gpu needs and does not require by itself.

Its provider library has no RUNPATH and its wheel requires no CUDA library, so that on a base without them it
falls back to the CPU in silence. Source of the rows: METADATA of the onnxruntime-gpu wheels 1.14.0 to 1.31.1.
"""

from __future__ import annotations

from packaging.requirements import Requirement
from packaging.version import Version

_EXTRAS = ("cuda", "cudnn")
_CUDA_11 = (
    "nvidia-cublas-cu11",
    "nvidia-cuda-nvrtc-cu11",
    "nvidia-cuda-runtime-cu11",
    "nvidia-cudnn-cu11~=8.0",
    "nvidia-cufft-cu11",
    "nvidia-curand-cu11",
)
_CUDA_12 = (
    "nvidia-cublas-cu12~=12.0",
    "nvidia-cuda-nvrtc-cu12~=12.0",
    "nvidia-cuda-runtime-cu12~=12.0",
    "nvidia-cudnn-cu12~=9.0",
    "nvidia-cufft-cu12~=11.0",
    "nvidia-curand-cu12~=10.0",
)
_CUDA_13 = (
    "nvidia-cublas~=13.0",
    "nvidia-cuda-nvrtc~=13.0",
    "nvidia-cuda-runtime~=13.0",
    "nvidia-cudnn-cu13~=9.0",
    "nvidia-cufft~=12.0",
    "nvidia-curand~=10.0",
)


def with_cuda_libraries(requirement: Requirement, version: Version | None) -> tuple[Requirement, ...]:
    """Return what is required in place of a requirement on onnxruntime-gpu.

    Args:
        requirement: A requirement on onnxruntime-gpu, as the spec has it; one with extras is left alone.
        version: The version it is pinned to, if it is.
    """
    if requirement.extras:
        return (requirement,)
    if version is not None and version < Version("1.19"):
        return (requirement, *map(Requirement, _CUDA_11))
    if version is not None and version < Version("1.21"):
        return (requirement, *map(Requirement, _CUDA_12))
    if version is not None and version.release[:2] == (1, 27):
        # The extras of 1.27 name nvidia-*-cu13 packages that are empty place holders.
        return (requirement, *map(Requirement, _CUDA_13))
    extended = Requirement(str(requirement))
    extended.extras = set(_EXTRAS)
    return (extended,)
