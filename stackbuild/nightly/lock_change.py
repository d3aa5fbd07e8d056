"""What a new lock changed since the last night; earlier locks are remembered in the user's store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import cast

from stackbuild.annotate.pin_list import PinList
from stackbuild.digests import short_hex
from stackbuild.drift.compare import compare_subjects
from stackbuild.drift.lock_subject import lock_subject
from stackbuild.drift.model import Drift, PinChange, Side
from stackbuild.drift.pins import compare_pins, stated_pins
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import StackNight
from stackbuild.nightly.reference import night_of
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store

_RECORD = "lock-of-a-night"
_LOOK_BACK = 400  # nights


@dataclass(frozen=True)
class LockedNight:
    """A night whose lock could be honoured.

    Attributes:
        result: What it found.
        name: The night in words.
    """

    result: StackNight
    name: str


def last_locked_night(history: History, stack: str, platform: str) -> LockedNight | None:
    """The newest night whose lock could be honoured; None when there is none.

    A lock that was edited by hand, or whose inputs are gone, is none that others are held against: it would hide what
    changed before it, and the next night would undo it.

    Args:
        history: Earlier nights.
        stack: The stack's name.
        platform: Its platform.
    """
    for point in history.stack_trend(stack, _LOOK_BACK, platform=platform):
        if point.outcome == "spec-or-lock" or not point.lock_sha256:
            continue
        result = history.result(stack, point.night, platform=platform)
        if result is not None:
            return LockedNight(result, night_of(point.started))
    return None


def remember_lock(lock: Lock, store: Store) -> None:
    """Keep a lock until a later night, which may find another."""
    sha256 = lock_sha256(lock)
    if store.record(_RECORD, sha256) is None:
        store.put_record(_RECORD, sha256, lock.model_dump(mode="json", by_alias=True))


def change_of_lock(
    last: LockedNight | None, lock: Lock, pins: PinList, store: Store, *, today: date
) -> Drift | None:
    """What the lock changed since the last night; None when it is the same, or nothing is known of the earlier one.

    Args:
        last: The stack's last night whose lock could be honoured; None when there was none.
        lock: The lock of tonight.
        pins: What it stands for on the last night's platform.
        store: Remembers earlier locks; where it has not the one of that night, the pins alone are compared.
        today: Names tonight.
    """
    if last is None or last.result.lock_sha256 in ("", pins.lock_sha256) or not last.result.platform:
        return None
    names = f"{pins.stack}, {last.name}", tonight_name(pins.stack, today)
    platform = cast(Platform, last.result.platform)
    record = store.record(_RECORD, last.result.lock_sha256)
    earlier = Lock.model_validate(record) if record is not None else None
    if earlier is not None and platform in earlier.platforms:
        drift = compare_subjects(
            lock_subject(earlier, platform), lock_subject(lock, platform), level="packages"
        )
        sides = tuple(
            side.model_copy(update={"name": name})
            for side, name in zip((drift.before, drift.after), names, strict=True)
        )
        moved = (*drift.pins, *_files(last.result, pins))
        return drift.model_copy(update={"before": sides[0], "after": sides[1], "pins": moved})
    if not last.result.pins:
        return None
    hashes = last.result.lock_sha256, pins.lock_sha256
    sides = tuple(
        Side(name=name, kind="lock", platform=platform, digest=f"sha256:{sha256}")
        for name, sha256 in zip(names, hashes, strict=True)
    )
    stated = PinList.model_validate(last.result.pins)
    return Drift(
        before=sides[0],
        after=sides[1],
        levels=("pins",),
        pins=(*compare_pins(stated_pins(stated), stated_pins(pins)), *_files(last.result, pins)),
        unknown=("The earlier lock is not in this machine's store, so its packages could not be compared.",),
    )


def tonight_name(stack: str, today: date) -> str:
    """What a comparison calls the stack of this night."""
    return f"{stack} of tonight, {today}"


def _files(last: StackNight, pins: PinList) -> tuple[PinChange, ...]:
    """That the stack's own files are others, which no lock tells."""
    if not last.pins:
        return ()
    before, after = (
        short_hex(sha256) for sha256 in (PinList.model_validate(last.pins).files_sha256, pins.files_sha256)
    )
    return (PinChange(pin="files", before=before, after=after),) if before != after else ()
