"""What ``verify`` was pointed at: a stack by its spec, or an image by its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.lock.file import read_lock
from stackbuild.lock.path import lock_path
from stackbuild.spec.load import load_spec
from stackbuild.spec.model import Platform, Waiver
from stackbuild.verification.promise import (
    Promise,
    promise_of_image,
    promise_of_lock,
    promise_of_pins,
    promise_of_spec,
)


@dataclass(frozen=True)
class VerifyTarget:
    """An image the engine has, and what it promises."""

    image: str
    promise: Promise
    waivers: tuple[Waiver, ...] = ()


def target_of_stack(engine: Engine, spec_path: Path) -> VerifyTarget:
    """The latest image of a stack, promised by its lock; an external stack's image, promised by its spec.

    Raises:
        LockError: The lock is missing, or has nothing for the image's platform (``platform-not-locked``).
        NotJudgedError: ``image-missing``.
    """
    spec = load_spec(spec_path).spec
    reference = spec.external or f"{spec.name}:latest"
    do = f"Pull it: docker pull {reference}." if spec.external else f"Run `stackbuild build {spec.name}`."
    platform = platform_of(_present(engine, reference, do))
    if spec.external is not None:
        return VerifyTarget(reference, promise_of_spec(spec, platform, spec_path.parent), spec.waivers)
    path = lock_path(spec_path)
    locked = read_lock(path).platforms.get(platform)
    if locked is None:
        raise LockError(
            f"The lock has nothing for {platform}, which the image is for.",
            code="platform-not-locked",
            where=str(path),
            do=f"Add {platform} to platforms: in the spec and run `stackbuild lock {spec.name}`.",
        )
    return VerifyTarget(reference, promise_of_lock(spec, locked, platform, spec_path.parent), spec.waivers)


def target_of_image(engine: Engine, reference: str) -> VerifyTarget:
    """An image by name or id, promised by its own labels and configuration.

    A pin list counts as far as its layers are the recorded ones: an image built on top, or one whose
    label was copied, promises what its configuration says.

    Raises:
        NotJudgedError: ``image-missing``, ``pin-list-unreadable``.
    """
    from stackbuild.publish.inspect import inspect_image
    from stackbuild.publish.labels import PINS_LABEL

    image = _present(engine, reference, "Build it, or pull it first.")
    platform = platform_of(image)
    if PINS_LABEL in image.labels:
        inspection = inspect_image(reference, image.labels, image.diff_ids)
        if inspection.pins is not None:
            return VerifyTarget(reference, promise_of_pins(inspection.pins, platform))
    return VerifyTarget(reference, promise_of_image(image.config, platform))


def platform_of(image: ImageInfo) -> Platform:
    """The image's platform.

    Raises:
        NotJudgedError: ``platform-not-supported``.
    """
    platform = f"{image.os}/{image.architecture}"
    if platform not in get_args(Platform):
        raise NotJudgedError(
            f"The image is for {platform}.",
            code="platform-not-supported",
            do=f"Images for {' and '.join(get_args(Platform))} can be verified.",
        )
    return cast(Platform, platform)


def _present(engine: Engine, reference: str, do: str) -> ImageInfo:
    image = engine.image(reference)
    if image is None:
        raise NotJudgedError(
            "The engine does not have this image.", code="image-missing", where=reference, do=do
        )
    return image
