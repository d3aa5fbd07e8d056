"""The lock as frozen models (DESIGN §3.3). Its bytes depend on its inputs alone.

Index and repository *names*, file names and pool paths are recorded, never URLs of mirrors:
mirrors change, bytes do not. The one exception is a wheel that the spec itself names by URL.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from stackbuild.findings import Finding
from stackbuild.frozen_model import FrozenModel
from stackbuild.spec.model import ImageDigest, Platform, Sha256, StackName

WheelGroup = Literal["cuda", "torch", "framework", "other"]


class LockedDeb(FrozenModel):
    """One Debian package."""

    name: str
    version: str
    architecture: str
    repository: str = Field(
        description="last path part of the repository's URI: debian, debian-security, ubuntu, …"
    )
    path: str = Field(description="path below the repository's URI, for example pool/main/…/x.deb")
    sha256: Sha256
    size: int = Field(ge=0, description="bytes")


class ImageBaseLock(FrozenModel):
    """A base image pinned by index and platform digest."""

    kind: Literal["image"] = "image"
    image: str
    tag: str
    index_digest: ImageDigest = Field(
        description="what FROM names; equals platform_digest for a single-platform image"
    )
    platform_digest: ImageDigest
    config_digest: ImageDigest
    diff_ids: tuple[ImageDigest, ...]
    config: dict[str, Any] = Field(
        description="the image's whole OCI configuration, without rootfs and history"
    )
    created: str = Field(description="RFC 3339")


class BootstrapBaseLock(FrozenModel):
    """A base made from locked debs; its root file system is re-tarred by our own writer."""

    kind: Literal["bootstrap"] = "bootstrap"
    distribution: str
    suite: str
    debs: tuple[LockedDeb, ...]
    diff_id: ImageDigest = Field(description="sha256 of the root file system's tar")
    created: str = Field(description="RFC 3339; the newest Release date among its inputs")


BaseLock = Annotated[ImageBaseLock | BootstrapBaseLock, Field(discriminator="kind")]


class OsLock(FrozenModel):
    """What the base's own files say of it."""

    id: str = Field(description="ID of os-release, for example debian")
    version_id: str
    codename: str = ""
    glibc: str


class PythonLock(FrozenModel):
    """The distribution's Python, as measured in the base with its debs installed."""

    version: str = Field(description="full version, for example 3.11.2")
    executable: str = Field(description="absolute path, for example /usr/bin/python3.11")
    tag: str = Field(description="interpreter tag, for example cp311")


class LockedWheel(FrozenModel):
    """One wheel."""

    name: str = Field(description="normalised name")
    version: str = Field(description="with its local label, for example 2.13.0+cpu")
    index: str = Field(description="index name; 'url' for a wheel that the spec names by URL")
    file: str = Field(pattern=r"^[^/\\]+\.whl$", description="file name, without a folder")
    url: str | None = Field(default=None, description="only where the spec itself names the URL")
    sha256: Sha256
    size: int = Field(ge=0, description="bytes")
    uploaded: str | None = Field(default=None, description="RFC 3339, where the index gives it")
    group: WheelGroup
    requires: tuple[str, ...] = Field(
        default=(), description="normalised names of the locked wheels it depends on"
    )
    requested: bool = Field(default=False, description="true when the spec names it")


class PlatformLock(FrozenModel):
    """All inputs for one platform."""

    base: BaseLock
    os: OsLock
    python: PythonLock | None = None
    debs: tuple[LockedDeb, ...] = Field(default=(), description="installed on top of the base, in name order")
    base_upgrades: tuple[str, ...] = Field(
        default=(), description="packages of the base that the debs upgrade"
    )
    wheels: tuple[LockedWheel, ...] = Field(default=(), description="in name order")
    bytecode_left_out: tuple[str, ...] = Field(
        default=(), description=".pyc files that differ between two runs, as paths without leading slash"
    )
    bytecode_failed: tuple[str, ...] = Field(default=(), description="source files that do not compile")
    created: str = Field(description="RFC 3339 timestamp of the newest input; becomes the image's created")
    findings: tuple[Finding, ...] = Field(
        default=(), description="what locking noticed, for example older-for-a-wheel"
    )


class Lock(FrozenModel):
    """``stacks/NAME.lock``."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    stack: StackName
    spec_sha256: Sha256 = Field(
        description="hash of the parts of the spec, and the files it reads, that decide the lock"
    )
    platforms: dict[Platform, PlatformLock]
