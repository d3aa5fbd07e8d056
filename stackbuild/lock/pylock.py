"""Export of a lock's wheels as ``pylock.toml`` (PEP 751), for pip, uv and others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from packaging.version import Version

from stackbuild.errors import LockError
from stackbuild.lock.model import LockedWheel, PlatformLock
from stackbuild.lock.wheels_target import Target
from stackbuild.spec.model import Platform


def pylock(platform_lock: PlatformLock, platform: Platform, locations: Mapping[str, str]) -> str:
    """Write the wheels of one platform as a ``pylock.toml``.

    Args:
        platform_lock: The locked platform.
        platform: Its name.
        locations: File name to URL or absolute path, as ``wheel_locations`` gives them: the format wants one for
            every wheel, a lock has none.

    Raises:
        LockError: The platform has no Python (``no-python``), or a wheel has no location (``wheel-not-found``).
    """
    python = platform_lock.python
    if python is None:
        raise LockError(
            "an image without Python has no wheels to export",
            code="no-python",
            do="Lock a stack with Python.",
        )
    target = Target.of(python, platform_lock.os, platform)
    release = Version(python.version).release
    marker = f"sys_platform == 'linux' and platform_machine == '{target.machine}'"
    lines = [
        'lock-version = "1.0"',
        f"environments = [{json.dumps(marker)}]",
        f'requires-python = "=={release[0]}.{release[1]}.*"',
        'created-by = "stackbuild"',
    ]
    versions = {wheel.name: wheel.version for wheel in platform_lock.wheels}
    for wheel in platform_lock.wheels:
        location = locations.get(wheel.file)
        if location is None:
            raise LockError(
                f"the index {wheel.index} has {wheel.file} no more", code="wheel-not-found", do="Lock again."
            )
        lines += ["", *_package(wheel, versions, location)]
    return "\n".join(lines) + "\n"


def _package(wheel: LockedWheel, versions: Mapping[str, str], location: str) -> Iterator[str]:
    yield "[[packages]]"
    yield f"name = {json.dumps(wheel.name)}"
    yield f"version = {json.dumps(wheel.version)}"
    needed = [
        f"{{name = {json.dumps(name)}, version = {json.dumps(versions[name])}}}"
        for name in wheel.requires
        if name in versions
    ]
    if needed:
        yield f"dependencies = [{', '.join(needed)}]"
    yield "[[packages.wheels]]"
    yield f"name = {json.dumps(wheel.file)}"
    if wheel.uploaded:
        yield f"upload-time = {wheel.uploaded}"
    yield f"{'url' if '://' in location else 'path'} = {json.dumps(location)}"
    yield f"size = {wheel.size}"
    yield f"hashes = {{sha256 = {json.dumps(wheel.sha256)}}}"
