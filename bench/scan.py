"""``stackbuild scan`` against syft, on one image that the engine has.

    python -m bench.scan [IMAGE]

Cold: no layer was scanned before. Warm: the second scan of the same image. Both read the image from the engine;
stackbuild judges it and writes its SBOM as well. Memory is the largest resident set of each program's own process.
Both are as they are when installed: this checkout's modules are compiled first, as installers of wheels do it.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

import stackbuild
from stackbuild.engine.docker_engine import Engine
from tests.support.syft import syft

COLD_MARK, WARM_MARK, MEMORY_MARK = 0.2, 0.05, 0.5
STACK = "torch-cpu"
_WARM_RUNS = 3


@dataclass(frozen=True)
class Run:
    """One run: wall-clock and processor seconds, largest resident set in bytes, and what it wrote."""

    seconds: float
    processor: float
    peak: int
    result: dict[str, Any]


def measured(command: list[str], environment: dict[str, str]) -> Run:
    """Run a command that writes JSON to stdout."""
    with tempfile.TemporaryFile() as output:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{command[0]} ended with {process.returncode}")
        output.seek(0)
        result = json.load(output)
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, result)


def main(image: str) -> int:
    """Run both; print times, ratios, memory and which packages only one of them found."""
    compileall.compile_dir(Path(stackbuild.__file__).parent, quiet=1)
    peer = measured(
        [str(syft()), "scan", f"docker:{image}", "-o", "json", "-q"], {"SYFT_CHECK_FOR_APP_UPDATE": "false"}
    )
    with tempfile.TemporaryDirectory(prefix="stackbuild-bench-") as folder:
        command = [sys.executable, "-m", "stackbuild", "scan", "-q", "--format", "json", image]
        command += ["--sbom", str(Path(folder) / "sbom.json")]
        environment = {"STACKBUILD_STORE": folder}
        cold = measured(command, environment)
        warm = min((measured(command, environment) for _ in range(_WARM_RUNS)), key=lambda run: run.seconds)
    print(f"{'':12}{'seconds':>10}{'processor':>11}{'peak MB':>9}{'ratio':>8}{'mark':>7}")
    print(f"{'syft':12}{peer.seconds:10.2f}{peer.processor:11.2f}{peer.peak / 1e6:9.0f}")
    ratios = (cold.seconds / peer.seconds, warm.seconds / peer.seconds, max(cold.peak, warm.peak) / peer.peak)
    for name, run, ratio, mark in (
        ("cold", cold, ratios[0], COLD_MARK),
        ("warm", warm, ratios[1], WARM_MARK),
    ):
        print(
            f"{name:12}{run.seconds:10.2f}{run.processor:11.2f}{run.peak / 1e6:9.0f}{ratio:8.3f}{mark:7.2f}"
        )
    print(f"{'memory':12}{'':30}{ratios[2]:8.3f}{MEMORY_MARK:7.2f}")
    # Both spell Python's names in their own way.
    theirs = {(canonicalize_name(item["name"]), item["version"]) for item in peer.result["artifacts"]}
    ours = {
        (canonicalize_name(item["name"]), item["version"])
        for kind in ("packages", "python")
        for item in cold.result[kind]
    }
    print(f"packages: syft {len(theirs)}, stackbuild {len(ours)}")
    for who, only in (("syft", theirs - ours), ("stackbuild", ours - theirs)):
        for name, version in sorted(only):
            print(f"  only {who}: {name} {version}")
    met = all(ratio <= mark for ratio, mark in zip(ratios, (COLD_MARK, WARM_MARK, MEMORY_MARK), strict=True))
    return 0 if met and not theirs - ours else 1


def built() -> str:
    """The image of the stack torch-cpu, built where the engine does not have it."""
    image = f"{STACK}:latest"
    with Engine.connect() as engine:
        if engine.image(image) is None:
            subprocess.run([sys.executable, "-m", "stackbuild", "build", "-q", STACK], check=True)
    return image


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else built()))
