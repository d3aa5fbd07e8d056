"""How findings about inputs name things."""

from __future__ import annotations

from stackbuild.lock.model import LockedWheel
from stackbuild.resolution.wheels.index_sources import URL_INDEX
from stackbuild.site_config import PYTORCH_PREFIX


def place(wheel: LockedWheel) -> str:
    """Where a wheel was locked from: ``the index default``, ``the channel pytorch-cu126``, ``its URL …``."""
    if wheel.index == URL_INDEX:
        return f"its URL {wheel.url}"
    kind = "channel" if wheel.index.startswith(PYTORCH_PREFIX) else "index"
    return f"the {kind} {wheel.index}"
