"""How long ``stackbuild --help`` takes, against an interpreter that only imports click.

python -m bench.help
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

MARK = 1.5
ROUNDS = 15


def seconds(command: list[str]) -> float:
    """Wall-clock seconds of one run of a command."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Print both medians and their ratio."""
    ours = [sys.executable, "-m", "stackbuild", "--help"]
    peer = [sys.executable, "-c", "import click"]
    taken: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(ROUNDS):  # interleaved, so that a busy machine is busy for both
        taken["ours"].append(seconds(ours))
        taken["peer"].append(seconds(peer))
    help_median, click_median = statistics.median(taken["ours"]), statistics.median(taken["peer"])
    ratio = help_median / click_median
    print(f"stackbuild --help         {help_median * 1000:7.1f} ms")
    print(f'python -c "import click"  {click_median * 1000:7.1f} ms')
    print(f"ratio {ratio:.2f} (mark: at most {MARK})")
    return 0 if ratio <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
