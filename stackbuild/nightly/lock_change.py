"""What a new lock changed since the last night; earlier locks are remembered in the user's store."""

from __future__ import annotations

from typing import cast

from stackbuild.annotate.pin_list import PinList
from stackbuild.drift.compare import compare_locks
from stackbuild.drift.model import Drift, Side
from stackbuild.drift.pins import compare_pins, stated_pins
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


def change_of_lock(last: StackNight | None, lock: Lock, pins: PinList, store: Store) -> Drift | None:
    """What the lock changed since the last night; None when it is the same, or nothing is known of the earlier one.

    Args:
        last: The stack's last night; None when there was none.
        lock: The lock of tonight.
        pins: What it stands for on the last night's platform.
        store: Remembers earlier locks; where it has not the one of that night, the pins alone are compared.
    """
    if last is None or last.lock_sha256 in ("", pins.lock_sha256) or not last.platform:
        return None
    platform = cast(Platform, last.platform)
    record = store.record(_RECORD, last.lock_sha256)
    earlier = Lock.model_validate(record) if record is not None else None
    if earlier is not None and platform in earlier.platforms:
        return compare_locks(earlier, lock, platform)
    if not last.pins:
        return None
    sides = [
        Side(name=f"{pins.stack}, {when}", kind="lock", platform=platform, digest=f"sha256:{sha256}")
        for when, sha256 in (("the night before", last.lock_sha256), ("tonight", pins.lock_sha256))
    ]
    return Drift(
        before=sides[0],
        after=sides[1],
        levels=("pins",),
        pins=compare_pins(stated_pins(PinList.model_validate(last.pins)), stated_pins(pins)),
        unknown=("The earlier lock is not in this machine's store, so its packages could not be compared.",),
    )
