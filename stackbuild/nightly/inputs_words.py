"""How findings about inputs count and name things."""

from __future__ import annotations

from stackbuild.lock.index_sources import URL_INDEX
from stackbuild.lock.model import LockedWheel
from stackbuild.site_config import PYTORCH_PREFIX


def count(number: int, noun: str) -> str:
    """``1 wheel``, ``2 wheels``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def share(number: int, total: int, noun: str) -> str:
    """``All 3 wheels are``, ``The one wheel is``, ``2 of 3 wheels are``."""
    if number == total:
        return f"The one {noun} is" if total == 1 else f"All {total} {noun}s are"
    return f"{number} of {total} {noun}s {'is' if number == 1 else 'are'}"


def place(wheel: LockedWheel) -> str:
    """Where a wheel was locked from: ``the index default``, ``the channel pytorch-cu126``, ``its URL …``."""
    if wheel.index == URL_INDEX:
        return f"its URL {wheel.url}"
    kind = "channel" if wheel.index.startswith(PYTORCH_PREFIX) else "index"
    return f"the {kind} {wheel.index}"
