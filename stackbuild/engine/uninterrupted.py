"""Requests that must come to their end: what the engine made for one that was given up would be nobody's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")


def uninterrupted(call: Callable[[], T], *, on_interrupt: Callable[[], None] | None = None) -> T:
    """Run ``call`` to its end; an interrupt that comes meanwhile is raised once it has ended.

    Args:
        call: Runs in a thread of its own, since an interrupt reaches the main thread alone.
        on_interrupt: Called at the interrupt, to make ``call`` end soon.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        try:
            return future.result()
        except KeyboardInterrupt:
            if on_interrupt is not None:
                on_interrupt()
            wait([future])
            raise


def insisted(remove: Callable[[], None]) -> None:
    """Run a removal to its end, also when an interrupt comes before or meanwhile; that is raised afterwards.

    Args:
        remove: May be called twice.
    """
    try:
        uninterrupted(remove)
    except KeyboardInterrupt:
        remove()  # the interrupt may have come before it began
        raise
