"""The real torch CPU wheel, fetched once through pip as the machine has it configured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.cache import cached

VERSION = "2.13.0+cpu"
FILE = f"torch-{VERSION}-cp311-cp311-manylinux_2_28_x86_64.whl"
CHANNEL = "https://download.pytorch.org/whl/cpu"


def torch_cpu_wheel() -> Path:
    """The wheel's path in the cache; its folder holds nothing else and can serve as an index."""
    return cached(f"torch-cpu/{FILE}", _download)


def _download(target: Path) -> None:
    """Try what pip is configured for first, so that a machine with a mirror never asks the channel."""
    folder = target.parent / ".download"
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
        *("--python-version=3.11", "--implementation=cp", "--abi=cp311"),
        *("--platform=manylinux_2_28_x86_64", f"--dest={folder}", f"torch=={VERSION}"),
    ]
    tries = [command, [*command, f"--extra-index-url={CHANNEL}"]]
    output = ""
    for attempt in tries:
        done = subprocess.run(attempt, capture_output=True, text=True)
        output += done.stdout + done.stderr
        if done.returncode == 0:
            (folder / FILE).replace(target)
            folder.rmdir()
            return
    raise AssertionError(f"pip could not fetch torch {VERSION}:\n{output}")
