"""What both builders take and give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stackbuild.lock.model import Lock, PlatformLock
from stackbuild.spec.model import Platform, StackSpec

if TYPE_CHECKING:
    from stackbuild.annotate.pin_list import PinList


@dataclass(frozen=True)
class BuildRequest:
    """One stack, locked, for one platform.

    Attributes:
        spec: The stack.
        folder: What the spec's relative paths start from.
        lock: The whole lock.
        platform: The platform to build.
        created: RFC 3339; the image's created.
        pins: What the image stands for; its labels come from it.
        tags: The image's names; empty where no image is made.
        fresh: Make every layer anew, whatever the store has.
    """

    spec: StackSpec
    folder: Path
    lock: Lock
    platform: Platform
    created: str
    pins: PinList
    tags: tuple[str, ...] = ()
    fresh: bool = False

    @property
    def platform_lock(self) -> PlatformLock:
        """The lock's part for the platform."""
        return self.lock.platforms[self.platform]


@dataclass(frozen=True)
class BuiltImage:
    """An image that is there.

    Attributes:
        stack: The stack's name.
        builder: ``assemble`` or ``dockerfile``.
        config_digest: sha256 of the configuration; the same on every machine for ``assemble``.
        image_id: The engine's own id.
        diff_ids: All layers, the base's first.
        tags: The image's names.
        made: Groups of layers that were made.
        reused: Groups of layers that the store had.
        seconds: Time by stage.
        unchanged: True when the image was there already and nothing was done.
    """

    stack: str
    builder: str
    config_digest: str
    image_id: str
    diff_ids: tuple[str, ...]
    tags: tuple[str, ...]
    made: tuple[str, ...] = ()
    reused: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    unchanged: bool = False


class Builder(Protocol):
    """Makes an image from a lock."""

    name: str

    def build(self, request: BuildRequest) -> BuiltImage:
        """Build and tag the image.

        Raises:
            BuildError: A step failed.
            LockError: An input is not what the lock says, or is gone.
            NotJudgedError: The engine, an index or a registry cannot be used.
        """
