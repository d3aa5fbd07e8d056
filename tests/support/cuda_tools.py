"""NVIDIA's ``cuobjdump``, and a real library with GPU code."""

from __future__ import annotations

from pathlib import Path

from tests.support.cache import cached
from tests.support.wheel_member import fetch_member

CUOBJDUMP_VERSION = "13.4.92"
_TORCH_CUDA = "torch/lib/libtorch_cuda.so"
_PROVIDER = "onnxruntime/capi/libonnxruntime_providers_cuda.so"


def cuobjdump() -> Path:
    """The program of the wheel ``nvidia-cuda-cuobjdump``."""
    tool = cached(
        f"cuobjdump-{CUOBJDUMP_VERSION}/cuobjdump",
        lambda target: fetch_member(f"nvidia-cuda-cuobjdump=={CUOBJDUMP_VERSION}", "bin/cuobjdump", target),
    )
    tool.chmod(0o755)
    return tool


def onnxruntime_provider(version: str) -> Path:
    """``libonnxruntime_providers_cuda.so`` of a release of onnxruntime-gpu."""
    return cached(
        f"onnxruntime-gpu-{version}/providers_cuda.so",
        lambda target: fetch_member(
            f"onnxruntime-gpu=={version}", _PROVIDER, target, "--python-version=3.12"
        ),
    )


def torch_cuda_library(version: str) -> Path:
    """``libtorch_cuda.so`` of the default index's build of a torch release."""
    return cached(
        f"torch-{version}/libtorch_cuda.so",
        lambda target: fetch_member(f"torch=={version}", _TORCH_CUDA, target, "--python-version=3.12"),
    )
