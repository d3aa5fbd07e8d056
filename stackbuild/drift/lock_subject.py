"""A lock as one side of a comparison."""

from __future__ import annotations

from stackbuild.annotate.pin_list import pin_list
from stackbuild.drift.model import Side
from stackbuild.drift.packages import Package, PackageSet
from stackbuild.drift.pins import stated_pins
from stackbuild.drift.subject import Subject
from stackbuild.errors import LockError
from stackbuild.image_environment import environment_of
from stackbuild.layers.venv import VenvLayout
from stackbuild.lock.base import base_config
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import BootstrapBaseLock, Lock, LockedDeb, PlatformLock
from stackbuild.spec.model import Platform, StackSpec


def lock_subject(lock: Lock, platform: Platform, *, name: str = "") -> Subject:
    """One platform of a lock as a side.

    Args:
        lock: The lock.
        platform: Which of its platforms.
        name: As the person named it; the stack's name when empty.

    Raises:
        LockError: ``platform-not-locked``.
    """
    locked = lock.platforms.get(platform)
    if locked is None:
        raise LockError(
            f"the lock has no inputs for {platform}",
            code="platform-not-locked",
            where=name or lock.stack,
            do=f"Name one of its platforms with --platform: {', '.join(sorted(lock.platforms))}.",
        )
    sha256 = lock_sha256(lock)
    # A pin list needs of the spec its name alone, as long as the lock's torch says what it was built for.
    spec = StackSpec.model_validate({"schema": 1, "name": lock.stack, "external": lock.stack})
    whole_base = isinstance(locked.base, BootstrapBaseLock)
    return Subject(
        side=Side(name=name or lock.stack, kind="lock", platform=platform, digest=f"sha256:{sha256}"),
        pins={
            **stated_pins(pin_list(spec, locked, "", lock_sha256=sha256)),
            **_requirement(locked, platform),
        },
        packages=PackageSet(
            packages=_packages(locked),
            partial=frozenset() if whole_base else frozenset({"deb"}),
            python_place=_place(locked),
        ),
        unknown=() if whole_base else (f"Which packages the base of {lock.stack} holds is not in its lock.",),
    )


def _packages(locked: PlatformLock) -> tuple[Package, ...]:
    base = locked.base
    place = _place(locked)
    debs: dict[tuple[str, str], LockedDeb] = {}
    for deb in (*(base.debs if isinstance(base, BootstrapBaseLock) else ()), *locked.debs):
        debs[deb.name, deb.architecture] = deb  # one on top of the base replaces the base's
    return (
        *(
            Package(
                kind="deb",
                name=deb.name,
                version=deb.version,
                sha256=deb.sha256,
                architecture=deb.architecture,
            )
            for deb in debs.values()
        ),
        *(
            Package(kind="python", name=wheel.name, version=wheel.version, place=place, sha256=wheel.sha256)
            for wheel in locked.wheels
        ),
    )


def _place(locked: PlatformLock) -> str:
    return f"/{VenvLayout.of(locked.python).site_packages}" if locked.python is not None else ""


def _requirement(locked: PlatformLock, platform: Platform) -> dict[str, str]:
    """What the base asks of the host: of the configuration a lock records the base's alone."""
    variables = environment_of(base_config(locked.base, platform)).items()
    return {f"env {name}": value for name, value in variables if name.startswith("NVIDIA_REQUIRE_")}
