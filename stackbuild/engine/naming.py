"""Moving names between images without leaving nameless ones behind."""

from __future__ import annotations

from collections.abc import Iterable

from stackbuild.engine.docker_engine import Engine


def remove_nameless(engine: Engine, images: Iterable[str]) -> None:
    """Remove images that have lost their last name.

    Args:
        engine: Has them.
        images: Ids; those that still have a name, or are gone, are left alone.
    """
    for image_id in images:
        old = engine.image(image_id)
        if old is not None and not old.repo_tags and not old.repo_digests:
            engine.remove_image(image_id)


def move_name(engine: Engine, image_id: str, ref: str) -> None:
    """Give an image a name, and remove the image that had it when it was that one's last.

    Args:
        engine: Has both.
        image_id: The image.
        ref: The name, with its tag.
    """
    before = engine.image(ref)
    if before is not None and before.id == image_id:
        return
    engine.tag(image_id, ref)
    if before is not None:
        remove_nameless(engine, [before.id])
