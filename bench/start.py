"""How long a short command takes from its start to its end, against an interpreter that only imports something.

Both run as they do where they are installed: from byte-code, which the first run writes and no figure counts.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Start:
    """Median wall-clock seconds of a command and of its peer."""

    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        """How many times as long the command takes."""
        return self.ours / self.peer


def start(ours: list[str], peer: list[str], *, folder: Path, rounds: int) -> Start:
    """Time two commands in turns, so that a busy machine is busy for both.

    Args:
        ours: The command.
        peer: What it is compared with.
        folder: Where both run.
        rounds: How often each runs.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def seconds(command: list[str]) -> float:
        began = time.perf_counter()
        subprocess.run(
            command,
            cwd=folder,
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - began

    for command in (ours, peer):
        seconds(command)
    taken = [(seconds(ours), seconds(peer)) for _ in range(rounds)]
    return Start(
        statistics.median(mine for mine, _ in taken), statistics.median(theirs for _, theirs in taken)
    )
