"""Small locks for tests."""

from __future__ import annotations

from stackbuild.lock.model import (
    BootstrapBaseLock,
    ImageBaseLock,
    Lock,
    LockedDeb,
    LockedWheel,
    OsLock,
    PlatformLock,
    PythonLock,
)


def digest(letter: str) -> str:
    return "sha256:" + letter * 64


def deb(name: str, version: str = "1.0-1", *, repository: str = "debian") -> LockedDeb:
    return LockedDeb(
        name=name,
        version=version,
        architecture="amd64",
        repository=repository,
        path=f"pool/main/{name[0]}/{name}/{name}_{version}_amd64.deb",
        sha256="d" * 64,
        size=1000,
    )


def wheel(name: str, version: str = "1.0") -> LockedWheel:
    return LockedWheel(
        name=name,
        version=version,
        index="default",
        file=f"{name}-{version}-py3-none-any.whl",
        sha256="e" * 64,
        size=2000,
        group="other",
    )


def image_base() -> ImageBaseLock:
    return ImageBaseLock(
        image="nvidia/cuda",
        tag="13.0.3-base-ubuntu24.04",
        index_digest=digest("a"),
        platform_digest=digest("b"),
        config_digest=digest("c"),
        diff_ids=(digest("1"), digest("0")),
        config={"os": "linux", "architecture": "amd64", "config": {"Env": ["B=1", "A=2"]}},
        created="2026-01-02T03:04:05Z",
    )


def bootstrap_base(*debs: LockedDeb) -> BootstrapBaseLock:
    return BootstrapBaseLock(
        distribution="debian",
        suite="bookworm",
        debs=debs,
        diff_id=digest("f"),
        created="2026-01-02T03:04:05Z",
    )


def platform_lock(**changes: object) -> PlatformLock:
    values: dict[str, object] = {
        "base": image_base(),
        "os": OsLock(id="ubuntu", version_id="24.04", codename="noble", glibc="2.39"),
        "python": PythonLock(version="3.12.3", executable="/usr/bin/python3.12", tag="cp312"),
        "debs": (deb("libgomp1"), deb("python3.12")),
        "wheels": (wheel("numpy"), wheel("torch")),
        "created": "2026-01-02T03:04:05Z",
    }
    return PlatformLock.model_validate(values | changes)


def lock(**changes: object) -> Lock:
    values: dict[str, object] = {
        "stack": "example",
        "spec_sha256": "5" * 64,
        "platforms": {"linux/amd64": platform_lock()},
    }
    return Lock.model_validate(values | changes)
