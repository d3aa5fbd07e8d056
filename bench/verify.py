"""``stackbuild verify`` of torch-cpu, against ``docker run`` of a bare ``import torch, onnxruntime``.

    python -m bench.verify

Both start a container of the same image each time; nothing is remembered (``--fresh``). The stack must be built.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

STACK = "torch-cpu"
MARK = 2.0
ROUNDS = 5
_PEER = [
    "docker",
    "run",
    "--rm",
    "--network=none",
    f"{STACK}:latest",
    "python",
    "-c",
    "import torch, onnxruntime",
]
_OURS = [sys.executable, "-m", "stackbuild", "verify", STACK, "--fresh", "-q"]


def seconds(command: list[str]) -> float:
    """Wall-clock seconds of one run of a command, which must succeed."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Print both medians and the median of the ratios, pair by pair."""
    pairs = [(seconds(_OURS), seconds(_PEER)) for _ in range(ROUNDS + 1)][1:]  # the first pair warms up
    ours, peer = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(mine / theirs for mine, theirs in pairs)
    print(f"stackbuild verify {STACK}               {ours:6.2f} s")
    print(f"docker run … import torch, onnxruntime   {peer:6.2f} s")
    print(f"ratio {ratio:.2f} (mark: at most {MARK})")
    return 0 if ratio <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
