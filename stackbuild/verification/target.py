"""What ``verify`` was pointed at: a stack by its spec, or an image by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

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
    return target_of_spec(spec_path, reference, platform_of(_present(engine, reference, do)))


def target_of_spec(spec_path: Path, reference: str, platform: Platform) -> VerifyTarget:
    """An image for a platform, promised by a stack's lock; by the spec alone for an external stack.

    Raises:
        LockError: The lock is missing, or has nothing for the platform (``platform-not-locked``).
    """
    spec = load_spec(spec_path).spec
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

    Raises:
        NotJudgedError: ``image-missing``, ``pin-list-unreadable``.
    """
    image = _present(engine, reference, "Build it, or pull it first.")
    return VerifyTarget(
        reference, promise_by_labels(reference, image.config, image.diff_ids, platform_of(image))
    )


def promise_by_labels(
    reference: str, config: Mapping[str, Any], diff_ids: Sequence[str], platform: Platform
) -> Promise:
    """What an image promises by itself.

    A pin list counts as far as its layers are the recorded ones: an image built on top, or one whose
    label was copied, promises what its configuration says.

    Args:
        reference: The image, to speak of it.
        config: Its configuration: Env, Labels, ….
        diff_ids: Of its layers.
        platform: Its platform.

    Raises:
        NotJudgedError: ``pin-list-unreadable``.
    """
    from stackbuild.annotate.inspect import inspect_image
    from stackbuild.annotate.labels import PINS_LABEL

    labels = config.get("Labels") or {}
    if PINS_LABEL in labels:
        inspection = inspect_image(reference, labels, diff_ids)
        if inspection.pins is not None:
            return promise_of_pins(inspection.pins, platform)
    return promise_of_image(config, platform)


def platform_of(image: ImageInfo) -> Platform:
    """The image's platform.

    Raises:
        NotJudgedError: ``platform-not-supported``.
    """
    return supported_platform(f"{image.os}/{image.architecture}")


def supported_platform(name: str) -> Platform:
    """A platform by its name, for example ``linux/amd64``.

    Raises:
        NotJudgedError: ``platform-not-supported``.
    """
    if name not in get_args(Platform):
        raise NotJudgedError(
            f"The image is for {name}.",
            code="platform-not-supported",
            do=f"Images for {' and '.join(get_args(Platform))} can be verified.",
        )
    return cast(Platform, name)


def _present(engine: Engine, reference: str, do: str) -> ImageInfo:
    image = engine.image(reference)
    if image is None:
        raise NotJudgedError(
            "The engine does not have this image.", code="image-missing", where=reference, do=do
        )
    return image
