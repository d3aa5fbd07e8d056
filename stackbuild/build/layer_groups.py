"""Which wheels share a layer: what a framework needs goes with the frameworks, so that a leaf is small."""

from __future__ import annotations

from stackbuild.lock.model import LockedWheel, PlatformLock


def with_framework_needs(lock: PlatformLock) -> PlatformLock:
    """The lock with the wheels that torch and other frameworks depend on grouped with the frameworks.

    They change when a framework does, while the rest changes with the team's own work: then a new version of
    one leaf package renews neither the layer nor the byte-code of sympy and its like.

    Args:
        lock: One platform's lock.
    """
    by_name = {wheel.name: wheel for wheel in lock.wheels}
    needed: set[str] = set()
    pending = [wheel for wheel in lock.wheels if wheel.group in ("torch", "framework")]
    while pending:
        for name in pending.pop().requires:
            wheel = by_name.get(name)
            if wheel is not None and name not in needed:
                needed.add(name)
                pending.append(wheel)

    def grouped(wheel: LockedWheel) -> LockedWheel:
        if wheel.group == "other" and wheel.name in needed:
            return wheel.model_copy(update={"group": "framework"})
        return wheel

    return lock.model_copy(update={"wheels": tuple(grouped(wheel) for wheel in lock.wheels)})
