"""Running a command without the collector of cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Look for no cycles meanwhile; also a decorator.

    What a scan builds (paths, entries, components) has none and lives until the command ends; looking for them again and
    again takes a sixth of its time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
