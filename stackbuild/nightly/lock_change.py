"""What a new lock changed since the last night; earlier locks are remembered in the user's store."""

from __future__ import annotations

from stackbuild.drift.compare import compare_locks
from stackbuild.drift.model import Drift
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock
from stackbuild.nightly.model import StackNight
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store

_RECORD = "lock-of-a-night"


def remember_lock(lock: Lock, store: Store) -> None:
    """Keep a lock until a later night, which may find another."""
    sha256 = lock_sha256(lock)
    if store.record(_RECORD, sha256) is None:
        store.put_record(_RECORD, sha256, lock.model_dump(mode="json", by_alias=True))


def change_of_lock(last: StackNight | None, lock: Lock, platform: Platform, store: Store) -> Drift | None:
    """What the lock changed since the last night; None when it is the same, or the earlier one is not here.

    Args:
        last: The stack's last night; None when there was none.
        lock: The lock of tonight.
        platform: Which of its platforms.
        store: Remembers earlier locks.
    """
    if last is None or last.lock_sha256 in ("", lock_sha256(lock)):
        return None
    record = store.record(_RECORD, last.lock_sha256)
    if record is None:
        return None
    earlier = Lock.model_validate(record)
    if platform not in earlier.platforms:
        return None
    return compare_locks(earlier, lock, platform)
