"""Where slow things the tests make are kept between runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """``$STACKBUILD_TEST_CACHE``, or ``stackbuild-tests`` below the user's cache folder; safe to delete."""
    chosen = os.environ.get("STACKBUILD_TEST_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "stackbuild-tests"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep other test processes of this user from the same block."""
    path = (cache_root() / name).with_name(f".{Path(name).name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The cached file of that name, made by ``make(path)`` when absent; one maker at a time."""
    target = cache_root() / name
    with locked(name):
        if not target.exists():
            partial = target.parent / f".{target.name}.partial"
            partial.unlink(missing_ok=True)
            make(partial)
            partial.replace(target)
    return target
