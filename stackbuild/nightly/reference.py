"""What the image of a night is held against, and whether it is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.pin_list import PinList
from stackbuild.annotate.tags import image_version
from stackbuild.engine.docker_engine import Engine
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import StackNight
from stackbuild.publish.remote_image import read_remote
from stackbuild.registry.client import RegistryClient

_LOOK_BACK = 400  # nights


@dataclass(frozen=True)
class Reference:
    """What an image should equal.

    Attributes:
        name: In words.
        diff_ids: All layers, the base's first.
        config_digest: Of its configuration; empty where that is not known.
        image: Its id in the engine; empty when the engine has it no more.
        remote: Its name in a registry, by digest; empty where none is known to have it.
        pins: Its pin list.
    """

    name: str
    diff_ids: tuple[str, ...]
    config_digest: str = ""
    image: str = ""
    remote: str = ""
    pins: Mapping[str, Any] = field(default_factory=dict)


def reference_of_rebuild(
    history: History,
    engine: Engine,
    *,
    pins: PinList,
    platform: str,
    inputs_sha256: str,
    names: Sequence[str],
) -> Reference | None:
    """What a rebuild must equal: the newest night with the same inputs that did not drift, else the engine's image.

    Args:
        history: Earlier nights.
        engine: May have images of the same lock.
        pins: What the stack stands for tonight.
        platform: The platform that is built.
        inputs_sha256: As ``StackNight.inputs_sha256``.
        names: Where the engine may have an image of the same lock, files and settings.

    Returns:
        None when there is nothing to compare with: the first night with these inputs.
    """
    for point in history.stack_trend(pins.stack, _LOOK_BACK, platform=platform):
        if point.drifted or point.lock_sha256 != pins.lock_sha256 or not point.config_digest:
            continue
        night = history.result(pins.stack, point.night, platform=platform)
        if night is not None and night.inputs_sha256 == inputs_sha256:
            return _of_night(night, night_of(point.started), engine, names)
    name = image_of_inputs(engine, pins, names, platform)
    image = engine.image(name) if name is not None else None
    if image is None:
        return None
    return Reference(
        f"the engine's {name}",
        image.diff_ids,
        # With the containerd store the engine's id is a manifest's digest, not the configuration's.
        "" if engine.info().containerd_store else image.id,
        image.id,
        pins=pins.model_dump(mode="json", by_alias=True, exclude_none=True),
    )


def published_image(
    client: RegistryClient, repository: str, pins: PinList, platform: str
) -> Reference | None:
    """The image of the same lock, files and settings that was published; None when there is none.

    Args:
        client: Reads the registry.
        repository: Where the stack is published.
        pins: What the stack stands for tonight.
        platform: Its platform.

    Raises:
        NotJudgedError: As ``RegistryClient.resolve``.
    """
    tag = image_version(pins)
    found = read_remote(client, repository, tag)
    child = found.child(platform) if found is not None else None
    stated = pins_that_hold(child.labels, child.diff_ids) if child is not None else None
    if child is None or stated is None or not _same_inputs(stated, pins):
        return None
    return Reference(
        f"the published {repository}:{tag}",
        child.diff_ids,
        child.config_digest,
        remote=f"{repository}@{child.digest}",
        pins=stated.model_dump(mode="json", by_alias=True, exclude_none=True),
    )


def image_of_inputs(engine: Engine, pins: PinList, names: Sequence[str], platform: str) -> str | None:
    """The first of these names whose image says that it is of the same lock, files and settings, for a platform."""
    for name in names:
        image = engine.image(name)
        if image is None or f"{image.os}/{image.architecture}" != platform:
            continue
        stated = pins_that_hold(image.labels, image.diff_ids)
        if stated is not None and _same_inputs(stated, pins):
            return name
    return None


def _same_inputs(one: PinList, other: PinList) -> bool:
    """Of the same lock, files and settings, if perhaps by another stackbuild."""
    return (one.lock_sha256, one.files_sha256, one.image_sha256) == (
        other.lock_sha256,
        other.files_sha256,
        other.image_sha256,
    )


def last_image(
    history: History, engine: Engine, *, stack: str, platform: str, names: Sequence[str]
) -> Reference | None:
    """The image of the newest night that had one, whatever its inputs and its outcome."""
    for point in history.stack_trend(stack, _LOOK_BACK, platform=platform):
        night = history.result(stack, point.night, platform=platform) if point.config_digest else None
        if night is not None:
            return _of_night(night, night_of(point.started), engine, names)
    return None


def known_digest(history: History, stack: str) -> str:
    """The digest that an external stack's reference had when a registry last told; empty when none did."""
    for point in history.stack_trend(stack, _LOOK_BACK):
        night = history.result(stack, point.night)
        if night is not None and night.registry_digest:
            return night.registry_digest
    return ""


def night_of(started: str) -> str:
    """A night in words, by its start in RFC 3339."""
    return f"the night of {started[:16].replace('T', ' ')}"


def _of_night(night: StackNight, name: str, engine: Engine, names: Sequence[str]) -> Reference:
    found = (engine.image(ref) for ref in names)
    image = next((one for one in found if one is not None and one.diff_ids == night.diff_ids), None)
    return Reference(name, night.diff_ids, night.config_digest, image.id if image else "", pins=night.pins)


def first_difference(before: Sequence[str], after: Sequence[str]) -> int | None:
    """Position, from 0, of the lowest layer that is not the same; None when all are."""
    for position in range(max(len(before), len(after))):
        if before[position : position + 1] != after[position : position + 1]:
            return position
    return None
