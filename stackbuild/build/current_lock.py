"""The lock to build from: the one that is there, or one made now."""

from __future__ import annotations

from pathlib import Path

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import LockError
from stackbuild.layers.files import require_sources
from stackbuild.lock.file import read_lock, require_current, staleness, write_lock
from stackbuild.lock.model import Lock
from stackbuild.lock.path import lock_path
from stackbuild.progress import Observer
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.store.store import Store


def current_lock(
    stack: LoadedSpec, *, engine: Engine, store: Store, site: SiteConfig, locked: bool, observer: Observer
) -> Lock:
    """Read a stack's lock; make and write it where it is missing or stale.

    Args:
        stack: The spec.
        engine: Resolves debs in a container.
        store: Keeps what locking fetches.
        site: Mirrors.
        locked: Never lock here; a missing or stale lock is an error.
        observer: Told that the stack is being locked, and why.

    Raises:
        LockError: ``lock-missing`` or ``lock-stale`` with ``locked``; a lock that cannot be read, or made.
        SpecError: ``files-missing``: said before a lock is made rather than after.
    """
    path = lock_path(stack.path)
    previous, why = _there(stack, path, locked=locked)
    if previous is not None and not why:
        return previous
    if previous is not None and locked:
        require_current(previous, stack.spec, stack.folder, path)
    require_sources(stack.spec.files, stack.folder)
    # Imported here: a build from a current lock does not need it.
    from stackbuild.build.locking import lock_stack

    with store.lock(f"lock {path.absolute()}", observer=observer):
        # Another process may have made it while this one waited.
        previous, why = _there(stack, path, locked=locked)
        if previous is not None and not why:
            return previous
        observer.note(f"{path.name} is made anew: {why}")
        lock = lock_stack(stack, site=site, store=store, engine=engine, previous=previous, observer=observer)
        write_lock(path, lock)
    return lock


def _there(stack: LoadedSpec, path: Path, *, locked: bool) -> tuple[Lock | None, str]:
    """The lock that is there, and why it cannot be built from; empty when it can."""
    try:
        previous = read_lock(path)
    except LockError as error:
        if locked or error.code != "lock-missing":
            raise
        return None, "there is none yet"
    return previous, staleness(previous, stack.spec, stack.folder)
