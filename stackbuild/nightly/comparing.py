"""Holding the image of a night against what it should equal, and saying what differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.pin_list import PinList
from stackbuild.drift.compare import compare_images
from stackbuild.drift.first_layer import layer_maker
from stackbuild.drift.model import Drift, LayerChange, Side
from stackbuild.drift.pins import compare_pins, stated_pins
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import LockError, NotJudgedError, ScanError
from stackbuild.nightly.ground import Ground
from stackbuild.nightly.lock_change import tonight_name
from stackbuild.nightly.reference import Reference, first_difference
from stackbuild.scan.sources.engine import EngineSource
from stackbuild.scan.sources.interface import ImageDescription, ImageSource
from stackbuild.scan.sources.registry import RegistrySource
from stackbuild.store.store import Store


@dataclass(frozen=True)
class Tonight:
    """The image of the night.

    Attributes:
        image: Its name or id in the engine.
        stack: The stack's name.
        config_digest: Of its configuration.
        diff_ids: All layers, the base's first.
    """

    image: str
    stack: str
    config_digest: str
    diff_ids: tuple[str, ...]

    def equals(self, reference: Reference) -> bool:
        """Whether layers and, where both are known, configurations are the same."""
        known = self.config_digest and reference.config_digest
        return self.diff_ids == reference.diff_ids and (
            not known or self.config_digest == reference.config_digest
        )


def explained(
    engine: Engine, tonight: Tonight, reference: Reference, ground: Ground, *, tars: Store
) -> Drift:
    """What differs: pins, packages and files where the engine has both images, else what is on record.

    Args:
        engine: Has the image of tonight.
        tonight: That image.
        reference: What it should equal, and does not.
        ground: Its store remembers what was found in each layer.
        tars: Where tars of layers may be.

    Raises:
        NotJudgedError: The engine died on the way.
    """
    after = EngineSource(engine, tonight.image, store=tars)
    reference = replace(reference, image=reference.image or _by_content(engine, tonight, reference))
    if not reference.image and not reference.remote:
        why = (
            "Neither the engine nor a registry that was asked has the earlier image, so neither packages nor files "
            "could be compared."
        )
        return _on_record(tonight, reference, after.describe(), why, ground.today)
    try:
        with _source(engine, reference, after.describe().platform, ground, tars) as before:
            drift = compare_images(before, after, store=ground.store, observer=ground.observer)
    except (ScanError, LockError, NotJudgedError) as error:
        if error.code == "engine-died":
            raise
        why = f"Its files could not be compared: {error.what}"
        return _on_record(tonight, reference, after.describe(), why, ground.today)
    return _named(drift, tonight, reference, ground.today)


def _by_content(engine: Engine, tonight: Tonight, reference: Reference) -> str:
    """The id of the earlier image under whatever name; empty where the engine has it no more.

    An image of the same layers has its files. Where tonight's has them too, only the configuration differs, and that
    an image of another id does not tell.
    """
    image = engine.image(reference.config_digest) if reference.config_digest else None
    if image is None and reference.diff_ids and reference.diff_ids != tonight.diff_ids:
        image = engine.image_of_layers(reference.diff_ids)
    return image.id if image is not None and image.diff_ids == reference.diff_ids else ""


@contextmanager
def _source(
    engine: Engine, reference: Reference, platform: str, ground: Ground, tars: Store
) -> Iterator[ImageSource]:
    """The earlier image: in the engine, else in the registry, of which only layers that differ are fetched."""
    if reference.image:
        yield EngineSource(engine, reference.image, store=tars)
        return
    with ground.registry() as client:
        yield RegistrySource(client, reference.remote, platform=platform)


def differs(drift: Drift) -> bool:
    """Whether content differs; without the files nobody can say that it does not."""
    return drift.differs or "files" not in drift.levels


def told(drift: Drift) -> str:
    """Where it differs, as a part of a sentence: the first differing layer with its maker and inputs."""
    layer = drift.first_layer
    if layer is None:
        return "; ".join(drift.metadata[:2]) or "its configuration alone"
    made_by = f" ({layer.maker})" if layer.maker else ""
    what = f"layer {layer.number}{made_by} is the first that is not the same"
    if layer.inputs:
        return f"{what}; {'; '.join(layer.inputs)}"
    return f"{what}, from the same inputs" if layer.inputs_known else f"{what}; what differs is not known"


def _named(drift: Drift, tonight: Tonight, reference: Reference, today: date) -> Drift:
    before = drift.before.model_copy(
        update={"name": reference.name, "digest": reference.config_digest or drift.before.digest}
    )
    after = drift.after.model_copy(
        update={"name": tonight_name(tonight.stack, today), "digest": tonight.config_digest}
    )
    return drift.model_copy(update={"before": before, "after": after})


def _on_record(
    tonight: Tonight, reference: Reference, image: ImageDescription, why: str, today: date
) -> Drift:
    position = first_difference(reference.diff_ids, tonight.diff_ids)
    stated = pins_that_hold(image.labels, image.diff_ids)
    pins = (
        compare_pins(stated_pins(PinList.model_validate(reference.pins)), stated_pins(stated))
        if reference.pins and stated is not None
        else ()
    )
    return Drift(
        before=Side(
            name=reference.name, kind="image", platform=image.platform, digest=reference.config_digest
        ),
        after=Side(
            name=tonight_name(tonight.stack, today),
            kind="image",
            platform=image.platform,
            digest=tonight.config_digest,
        ),
        levels=("pins",),
        pins=pins,
        first_layer=None if position is None else _layer(position, reference, image),
        metadata=() if position is not None else ("its configuration alone differs",),
        unknown=(why,),
        undetailed=True,
    )


def _layer(position: int, reference: Reference, image: ImageDescription) -> LayerChange:
    def of(diff_ids: tuple[str, ...]) -> str:
        return diff_ids[position] if position < len(diff_ids) else ""

    command = image.commands[position] if position < len(image.commands) else ""
    alone = position >= min(len(reference.diff_ids), len(image.diff_ids))
    return LayerChange(
        number=position + 1,
        maker=layer_maker(command),
        before=of(reference.diff_ids),
        after=of(image.diff_ids),
        inputs=("only one of the images has such a layer",) if alone else (),
        inputs_known=alone,
    )
