"""What a lock says twice must agree: where it does not, somebody edited it by hand.

Only what every lock that stackbuild writes keeps is asked for here. What just the world can refute (a hash, a size,
a digest) is held against the world by whoever fetches it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from stackbuild.distribution_name import normalized_name
from stackbuild.lock.model import (
    BootstrapBaseLock,
    ImageBaseLock,
    Lock,
    LockedDeb,
    LockedWheel,
    PlatformLock,
    PythonLock,
)

_OF_A_URL = "url"  # the index of a wheel that the spec names by URL


def contradictions(lock: Lock) -> list[str]:
    """Where a lock contradicts itself: a sentence each, beginning with the entry, without a full stop."""
    found = []
    for platform, part in lock.platforms.items():
        found += [f"platforms.{platform}.{text}" for text in _of_platform(platform, part)]
    return found


def _of_platform(platform: str, lock: PlatformLock) -> Iterator[str]:
    yield from _of_base(platform, lock)
    if lock.python is not None:
        yield from _of_python(lock.python)
    names = frozenset(wheel.name for wheel in lock.wheels)
    for wheel in lock.wheels:
        yield from _of_wheel(wheel, names)
    for name, count in Counter(wheel.name for wheel in lock.wheels).items():
        if count > 1:
            yield f"wheels: {name} is there {count} times"
    yield from _of_debs("debs", lock.debs)
    yield from _of_moment("created", lock.created)


def _of_base(platform: str, lock: PlatformLock) -> Iterator[str]:
    base = lock.base
    yield from _of_moment("base.created", base.created)
    if isinstance(base, BootstrapBaseLock):
        yield from _of_debs("base.debs", base.debs)
    elif isinstance(base, ImageBaseLock):
        is_for = f"{base.config.get('os', 'linux')}/{base.config.get('architecture', '')}"
        if is_for != platform:
            yield f"base.config: the configuration is of an image for {is_for}"


def _of_python(python: PythonLock) -> Iterator[str]:
    major, minor = (*python.version.split("."), "")[:2]
    if python.tag != f"cp{major}{minor}":
        yield f"python.tag: {python.tag} is not the tag of Python {python.version}"
    if PurePosixPath(python.executable).name != f"python{major}.{minor}":
        yield f"python.executable: {python.executable} is not Python {python.version}"


def _of_wheel(wheel: LockedWheel, names: frozenset[str]) -> Iterator[str]:
    entry = f"wheels.{wheel.name}"
    parts = wheel.file.removesuffix(".whl").split("-")
    if len(parts) not in (5, 6):  # PEP 427: a build tag may stand after the version
        yield f"{entry}.file: {wheel.file} is not the name of a wheel"
        return
    if normalized_name(parts[0]) != wheel.name:
        yield f"{entry}.name: the file {wheel.file} is of {normalized_name(parts[0])}"
    elif not _same_version(parts[1], wheel.version):
        yield f"{entry}.version: it is {wheel.version}, and the file is {wheel.file}"
    if (wheel.index == _OF_A_URL) != (wheel.url is not None):
        yield f"{entry}.url: a wheel has one where its index is '{_OF_A_URL}', and only there"
    for required in wheel.requires:
        if required not in names:
            yield f"{entry}.requires: there is no wheel {required}"


def _of_debs(entry: str, debs: tuple[LockedDeb, ...]) -> Iterator[str]:
    for (name, architecture), count in Counter((deb.name, deb.architecture) for deb in debs).items():
        if count > 1:
            yield f"{entry}: {name} for {architecture} is there {count} times"
    for deb in debs:
        path = PurePosixPath(deb.path)
        if path.is_absolute() or ".." in path.parts or path.suffix != ".deb":
            yield f"{entry}.{deb.name}.path: {deb.path} is no path of a package below its repository"


def _of_moment(entry: str, moment: str) -> Iterator[str]:
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        yield f"{entry}: {moment!r} is no moment as RFC 3339 writes it"


def _same_version(spelled: str, version: str) -> bool:
    if spelled == version:
        return True
    # Imported here: mostly they are spelled the same.
    from packaging.version import InvalidVersion, Version

    try:
        return Version(spelled) == Version(version)
    except InvalidVersion:
        return False
