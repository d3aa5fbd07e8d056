"""A real numpy wheel, fetched once through pip as the machine has it configured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.cache import cached

VERSION = "2.1.3"
FILE = f"numpy-{VERSION}-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


def numpy_wheel() -> Path:
    """The wheel's path in the cache."""
    return cached(f"numpy/{FILE}", _download)


def _download(target: Path) -> None:
    folder = target.parent / ".download"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
            *("--python-version=3.11", "--implementation=cp", "--abi=cp311"),
            *("--platform=manylinux2014_x86_64", f"--dest={folder}", f"numpy=={VERSION}"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / FILE).replace(target)
    folder.rmdir()
