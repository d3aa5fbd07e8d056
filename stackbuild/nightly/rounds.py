"""The rounds of a night: all stacks, then again those that infrastructure kept from being judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stackbuild.nightly.model import StackNight
from stackbuild.nightly.notes import DISK_FULL
from stackbuild.progress import Observer
from stackbuild.store.outages import Outages

# What is judged so far, by path.
Results = Mapping[Path, Sequence[StackNight]]


def run_rounds(
    stacks: Sequence[Path],
    judge: Callable[[Sequence[Path]], Sequence[Path]],
    *,
    results: Results,
    retries: int,
    pause: float,
    outages: Outages,
    observer: Observer,
) -> Sequence[Path]:
    """Judge stacks; what infrastructure kept from being judged is tried again at the end, all of it after one wait.

    Args:
        stacks: Paths of the specs.
        judge: Judges some of them, and returns those that infrastructure kept from being judged.
        results: What it found so far; a full disk ends the rounds.
        retries: How many further rounds there may be.
        pause: Seconds to wait before each.
        outages: Servers that were down; what they were is forgotten before each further round.
        observer: Told of the wait.

    Returns:
        Those that infrastructure kept from being judged to the end.
    """
    left = judge(stacks)
    for _ in range(retries):
        if not left or disk_is_full(results):
            break
        observer.note(f"trying again in {pause:.0f} s: {', '.join(path.stem for path in left)}")
        time.sleep(pause)
        outages.forget()
        left = judge(left)
    return left


def disk_is_full(results: Results) -> bool:
    """Whether a stack's night ended with a full disk: nothing further is begun then."""
    found = (finding for stacks in list(results.values()) for stack in stacks for finding in stack.findings)
    return any(finding.code == DISK_FULL for finding in found)
