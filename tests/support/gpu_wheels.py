"""Small stand-ins for the wheels of a CUDA stack: torch of a channel, onnxruntime-gpu, NVIDIA's libraries.

Names, versions, requirements and the places of their libraries are those of the real wheels, as are what the libraries
need, where they look for it and which GPU architectures they are for; code is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stackbuild.facts.tables import Facts
from tests.support.elf import make_elf, make_fatbin
from tests.support.wheels import make_wheel

_TAG = "py3-none-manylinux_2_27_x86_64"
# Distribution to version and library. cu12 names carry a suffix; from CUDA 13 on only some do.
_CUDA_12 = {
    "nvidia-cublas-cu12": ("12.6.4.1", "nvidia/cublas/lib/libcublas.so.12"),
    "nvidia-cuda-nvrtc-cu12": ("12.6.77", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
    "nvidia-cuda-runtime-cu12": ("12.6.77", "nvidia/cuda_runtime/lib/libcudart.so.12"),
    "nvidia-cudnn-cu12": ("9.10.2.21", "nvidia/cudnn/lib/libcudnn.so.9"),
    "nvidia-cufft-cu12": ("11.3.0.4", "nvidia/cufft/lib/libcufft.so.11"),
    "nvidia-curand-cu12": ("10.3.7.77", "nvidia/curand/lib/libcurand.so.10"),
    "nvidia-nccl-cu12": ("2.27.5", "nvidia/nccl/lib/libnccl.so.2"),
}
_CUDA_13 = {
    "nvidia-cublas": ("13.0.2.14", "nvidia/cu13/lib/libcublas.so.13"),
    "nvidia-cuda-nvrtc": ("13.0.88", "nvidia/cu13/lib/libnvrtc.so.13"),
    "nvidia-cuda-runtime": ("13.0.96", "nvidia/cu13/lib/libcudart.so.13"),
    "nvidia-cudnn-cu13": ("9.13.0.50", "nvidia/cudnn/lib/libcudnn.so.9"),
    "nvidia-cufft": ("12.0.0.61", "nvidia/cu13/lib/libcufft.so.12"),
    "nvidia-curand": ("10.4.0.35", "nvidia/cu13/lib/libcurand.so.10"),
    "nvidia-nccl-cu13": ("2.27.7", "nvidia/nccl/lib/libnccl.so.2"),
}
_CUDA_EXTRA = ("nvrtc", "runtime", "cufft", "curand")
_WITH_GPU_CODE = ("cublas", "cufft", "curand", "nccl")
_ONNXRUNTIME_NEEDS = ("cublas", "runtime", "cufft", "curand")


def make_gpu_wheels(
    folder: Path, *, torch: str, variant: str, onnxruntime: str, numpy: str = "2.3.5"
) -> Mapping[str, Path]:
    """Write the wheels a CUDA stack needs.

    Args:
        folder: Where the folders of the two indexes go.
        torch: Version of torch without its local label.
        variant: Its variant, for example ``cu130``.
        onnxruntime: Version of onnxruntime-gpu.
        numpy: Version of numpy.

    Returns:
        Index name to folder: ``default`` and ``pytorch-VARIANT``, for ``IndexServer`` or the site file.
    """
    libraries = _CUDA_12 if variant.startswith("cu12") else _CUDA_13
    default, channel = folder / "default", folder / f"pytorch-{variant}"
    facts = Facts()
    build, release = facts.torch_variant(torch, variant), facts.onnxruntime_release(onnxruntime)
    assert build is not None
    assert release is not None
    for name, (version, library) in libraries.items():
        code = make_fatbin(cubins=build.sm) if any(part in name for part in _WITH_GPU_CODE) else b""
        content = make_elf(soname=Path(library).name, fatbin=code) + f"{name} {version}\n".encode()
        make_wheel(default, name, version, files={library: content}, tag=_TAG)
    paths = sorted({str(Path(library).parent) for _, library in libraries.values()})
    make_wheel(default, "numpy", numpy, tag=_TAG, metadata=["License-Expression: BSD-3-Clause"])
    make_wheel(
        channel,
        "torch",
        f"{torch}+{variant}",
        tag=_TAG,
        requires=[f"{name}=={version}" for name, (version, _) in libraries.items()],
        files={
            "torch/__init__.py": "from torch.version import __version__\n",
            "torch/version.py": f"__version__ = '{torch}+{variant}'\ncuda = '{_dotted(variant)}'\n",
            "torch/lib/libtorch_cuda.so": make_elf(
                soname="libtorch_cuda.so",
                needed=[Path(library).name for _, library in libraries.values()],
                rpath=":".join(["$ORIGIN", *(f"$ORIGIN/../../{path}" for path in paths)]),
                fatbin=make_fatbin(cubins=build.sm, ptx=build.ptx),
            ),
        },
        metadata=["License-Expression: BSD-3-Clause"],
    )
    make_wheel(
        default,
        "onnxruntime-gpu",
        onnxruntime,
        tag=_TAG,
        requires=["numpy>=1.21.6", *_extra_requirements(libraries)],
        extras=["cuda", "cudnn"],
        files={
            "onnxruntime/__init__.py": f"__version__ = '{onnxruntime}'\n",
            # Without a path of its own: it finds CUDA where LD_LIBRARY_PATH leads, or not at all.
            "onnxruntime/capi/libonnxruntime_providers_cuda.so": make_elf(
                soname="libonnxruntime_providers_cuda.so",
                needed=[
                    Path(library).name
                    for name, (_, library) in libraries.items()
                    if any(part in name for part in _ONNXRUNTIME_NEEDS)
                ],
                fatbin=make_fatbin(cubins=release.sm or (), ptx=release.ptx or ()),
            ),
        },
        metadata=["License: MIT License"],
    )
    return {"default": default, f"pytorch-{variant}": channel}


def _dotted(variant: str) -> str:
    return f"{variant[2:-1]}.{variant[-1]}"


def _extra_requirements(libraries: Mapping[str, tuple[str, str]]) -> list[str]:
    """What the real wheel's extras ``cuda`` and ``cudnn`` require, for example ``nvidia-cufft~=12.0``."""
    requirements = []
    for name, (version, _) in libraries.items():
        major = version.split(".")[0]
        if "cudnn" in name:
            requirements.append(f'{name}~={major}.0; extra == "cudnn"')
        elif any(part in name for part in _CUDA_EXTRA):
            requirements.append(f'{name}~={major}.0; extra == "cuda"')
    return requirements
