"""What an image says of itself, held against the layers it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from stackbuild.annotate.labels import read_pins_label
from stackbuild.annotate.pin_list import PinList, PinModel
from stackbuild.counting import counted

Relation = Literal["exact", "derived", "different", "unrecorded"]


class Inspection(PinModel):
    """An image, and what its label may claim.

    ``exact``: the image is what the label says. ``derived``: further layers were put on top, so the pins are those of
    the image below. ``different``: the label came along, the layers did not. ``unrecorded``: the builder could not
    record the layers, so nothing built on top can be told apart.
    """

    image: str
    relation: Relation
    statement: str
    pins: PinList | None = None
    derived_from: PinList | None = None
    layers_on_top: int = 0


def inspect_image(image: str, labels: Mapping[str, str], diff_ids: Sequence[str]) -> Inspection:
    """Hold an image's pin list against its layers.

    Args:
        image: The reference, to speak of it.
        labels: The image's labels.
        diff_ids: The diff IDs of its layers, the base's first.

    Raises:
        NotJudgedError: ``no-pin-list`` or ``pin-list-unreadable``.
    """
    label = read_pins_label(labels, image)
    recorded, pins = list(label.diff_ids), label.pins
    present = list(diff_ids)
    if not recorded:
        return Inspection(
            image=image,
            relation="unrecorded",
            statement=f"built from stack {pins.stack}; its layers were not recorded, so it cannot be told whether "
            "something was put on top",
            pins=pins,
        )
    if present == recorded:
        return Inspection(
            image=image, relation="exact", statement=f"stack {pins.stack}, layer by layer", pins=pins
        )
    if present[: len(recorded)] == recorded:
        more = len(present) - len(recorded)
        return Inspection(
            image=image,
            relation="derived",
            statement=f"derived from stack {pins.stack}: {counted(more, 'layer')} on top, "
            "which its pin list says nothing of",
            derived_from=pins,
            layers_on_top=more,
        )
    return Inspection(
        image=image,
        relation="different",
        statement=f"its label names stack {pins.stack}, but its layers are not the recorded ones: "
        "the pin list does not hold for it",
    )
