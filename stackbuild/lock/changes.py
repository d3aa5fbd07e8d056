"""What moved between two locks of one stack, as lines for a person."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.digests import short_digest
from stackbuild.lock.model import BootstrapBaseLock, ImageBaseLock, Lock, PlatformLock


def lock_changes(before: Lock | None, after: Lock) -> tuple[str, ...]:
    """The differences that a reviewer looks for, one line each; empty when nothing moved.

    Args:
        before: The previous lock; None when there was none.
        after: The new one.
    """
    lines: list[str] = []
    several = len(after.platforms) > 1
    for platform, now in sorted(after.platforms.items()):
        prefix = f"{platform}: " if several else ""
        then = before.platforms.get(platform) if before is not None else None
        if then is None:
            continue
        lines.extend(f"{prefix}{line}" for line in _platform_changes(then, now))
    if before is not None:
        lines.extend(
            f"{platform}: no longer locked"
            for platform in sorted(set(before.platforms) - set(after.platforms))
        )
    return tuple(lines)


def _platform_changes(then: PlatformLock, now: PlatformLock) -> list[str]:
    lines = []
    if then.base != now.base:
        lines.append(f"base {_base(then)} → {_base(now)}")
    if then.python != now.python:
        lines.append(
            f"python {then.python.version if then.python else 'none'} → "
            f"{now.python.version if now.python else 'none'}"
        )
    lines += _moved("deb", _debs(then), _debs(now))
    lines += _moved(
        "wheel",
        {wheel.name: wheel.version for wheel in then.wheels},
        {wheel.name: wheel.version for wheel in now.wheels},
    )
    return lines


def _debs(platform_lock: PlatformLock) -> dict[str, str]:
    base = platform_lock.base
    own = base.debs if isinstance(base, BootstrapBaseLock) else ()
    return {deb.name: deb.version for deb in (*own, *platform_lock.debs)}


def _moved(kind: str, then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    lines = []
    for name in sorted({*then, *now}):
        old, new = then.get(name), now.get(name)
        if old is None:
            lines.append(f"{kind} {name} {new} added")
        elif new is None:
            lines.append(f"{kind} {name} {old} removed")
        elif old != new:
            lines.append(f"{kind} {name} {old} → {new}")
    return lines


def _base(platform_lock: PlatformLock) -> str:
    base = platform_lock.base
    if isinstance(base, ImageBaseLock):
        return f"{base.image}:{base.tag}@{short_digest(base.index_digest)}"
    return f"{base.distribution} {base.suite} {short_digest(base.diff_id)}"
