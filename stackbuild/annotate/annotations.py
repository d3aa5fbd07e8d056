"""Annotations of a published manifest: what the image's labels say, readable without its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackbuild.annotate.inspect import inspect_image
from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.annotate.pin_list import PinList
from stackbuild.errors import NotJudgedError

INPUTS = "io.stackbuild.inputs"  # hash of all that decides the image; see build/plan.py
VERDICT = "io.stackbuild.verdict"
COMPLETE = "io.stackbuild.complete"
STARTED = "io.stackbuild.started"
GPUS = "io.stackbuild.gpus"  # compute capabilities that were judged on: sm_80 sm_90
CONFIG = "io.stackbuild.config"  # digest of the configuration that a document is about
CREATED = "org.opencontainers.image.created"

_OCI = "org.opencontainers.image."


def manifest_annotations(
    labels: Mapping[str, str], diff_ids: Sequence[str], inputs: str | None
) -> dict[str, str]:
    """The annotations of an image's manifest, in name order: OCI's own labels, the pin list, the inputs' hash.

    An annotation never says what does not hold: an image that was built on top of another inherits that one's labels,
    and gets none of them.

    Args:
        labels: The image's labels.
        diff_ids: Its layers.
        inputs: Hash of what decided the image, where that is known.
    """
    found: dict[str, str] = {}
    if PINS_LABEL not in labels or pins_that_hold(labels, diff_ids) is not None:
        found = {name: value for name, value in labels.items() if name.startswith(_OCI) or name == PINS_LABEL}
    if inputs is not None:
        found[INPUTS] = inputs
    return dict(sorted(found.items()))


def pins_that_hold(labels: Mapping[str, str], diff_ids: Sequence[str]) -> PinList | None:
    """The pin list of an image, when it has one and its layers are those that the list was recorded for."""
    try:
        return inspect_image("", labels, diff_ids).pins
    except NotJudgedError:
        return None
