"""Compiles the simulated driver's libraries with the machine's C compiler; results are kept in the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.support.cache import cached

_FOLDER = Path(__file__).parent
# gnu11: newer dialects bind to symbols that older images' C library has not.
_FLAGS = ("-shared", "-fPIC", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden")
_LIBCUDA, _LIBNVIDIA_ML = "libcuda.so.1", "libnvidia-ml.so.1"


def libcuda(*, driver: str | None = None, cuda: int | None = None) -> Path:
    """libcuda.so.1: the host driver's, or one that lies in an image and belongs to another driver.

    Args:
        driver: The version it belongs to, for example 575.57.08 for cuda-compat-12-9.
        cuda: Its CUDA level, for example 12090; needed with ``driver``.
    """
    if driver is None:
        return _compiled("libcuda.c", _LIBCUDA)
    return _compiled("libcuda.c", _LIBCUDA, f'-DLIBRARY_DRIVER="{driver}"', f"-DLIBRARY_CUDA={cuda}")


def libcuda_stub() -> Path:
    """The libcuda of a toolkit's ``lib64/stubs``."""
    return _compiled("libcuda_stub.c", _LIBCUDA)


def libnvidia_ml(*, driver: str | None = None) -> Path:
    """libnvidia-ml.so.1: the host driver's, or one of ``driver`` that lies in an image."""
    if driver is None:
        return _compiled("libnvidia_ml.c", _LIBNVIDIA_ML)
    return _compiled("libnvidia_ml.c", _LIBNVIDIA_ML, f'-DLIBRARY_DRIVER="{driver}"')


def _compiled(source: str, soname: str, *defines: str) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler, "no C compiler is installed; `make test` installs gcc and libc6-dev"
    texts = [(_FOLDER / name).read_text() for name in (source, "simulated_driver.h")]
    key = hashlib.sha256("\0".join((*texts, soname, *_FLAGS, *defines)).encode()).hexdigest()[:16]

    def make(target: Path) -> None:
        command = [compiler, *_FLAGS, *defines, f"-Wl,-soname,{soname}", "-o", str(target), source]
        done = subprocess.run(command, cwd=_FOLDER, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        target.chmod(0o755)

    return cached(f"simulated-gpu/{soname}.{key}", make)
