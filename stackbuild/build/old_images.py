"""Images of a stack that its lock no longer stands for."""

from __future__ import annotations

from dataclasses import dataclass

from stackbuild.annotate.labels import read_pins_label
from stackbuild.annotate.pin_list import pin_list
from stackbuild.annotate.tags import image_version
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import NotJudgedError
from stackbuild.layers.files import files_sha256
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock
from stackbuild.spec.load import LoadedSpec


@dataclass(frozen=True)
class OldImage:
    """An image under the name of an earlier version.

    Attributes:
        reference: ``STACK:VERSION``.
        created: As its configuration says, RFC 3339.
        size: Bytes of all its layers, those included that other images share.
    """

    reference: str
    created: str
    size: int


def old_images(engine: Engine, stack: LoadedSpec, lock: Lock) -> tuple[OldImage, ...]:
    """The images of earlier versions of a stack that the engine has, oldest first.

    Only a name that a build gave counts: ``STACK:VERSION`` of exactly the image's own pin list. What ``latest``
    names is not old, nor what spec and lock stand for now; tags that somebody set by hand are theirs.

    Args:
        engine: The engine.
        stack: The spec.
        lock: Its lock.

    Raises:
        SpecError: A file of the spec is missing.
    """
    name = stack.spec.name
    files = files_sha256(stack.spec, stack.folder)
    now = {
        f"{name}:{image_version(pin_list(stack.spec, locked, files, lock_sha256=lock_sha256(lock)))}"
        for locked in lock.platforms.values()
    }
    latest = engine.image(f"{name}:latest")
    found = []
    for reference in engine.tags_of(name):
        image = engine.image(reference)
        if image is None or reference in now or (latest is not None and image.id == latest.id):
            continue
        if reference == _built_as(image):
            found.append(OldImage(reference, image.created, image.size))
    return tuple(sorted(found, key=lambda old: (old.created, old.reference)))


def remove_old_images(engine: Engine, images: tuple[OldImage, ...]) -> tuple[OldImage, ...]:
    """Remove the names, and the images that had no other; returns those that stay because a container uses them."""
    for old in images:
        engine.remove_image(old.reference)
    return tuple(old for old in images if engine.image(old.reference) is not None)


def _built_as(image: ImageInfo) -> str:
    """The versioned name that a build gave the image; empty for an image of somebody else's."""
    try:
        label = read_pins_label(image.labels, image.id)
    except NotJudgedError:  # no pin list, or one of another version
        return ""
    inherited = label.diff_ids and label.diff_ids != image.diff_ids  # built on top of a stack
    return "" if inherited else f"{label.pins.stack}:{image_version(label.pins)}"
