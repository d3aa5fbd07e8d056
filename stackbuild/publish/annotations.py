"""Annotations of a published manifest: what the image's labels say, readable without its configuration."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.publish.labels import PINS_LABEL

INPUTS = "io.stackbuild.inputs"  # hash of all that decides the image; see build/plan.py
VERDICT = "io.stackbuild.verdict"
COMPLETE = "io.stackbuild.complete"
STARTED = "io.stackbuild.started"
GPUS = "io.stackbuild.gpus"  # compute capabilities that were judged on: sm_80 sm_90
CONFIG = "io.stackbuild.config"  # digest of the configuration that a document is about
CREATED = "org.opencontainers.image.created"
TITLE = "org.opencontainers.image.title"

_OCI = "org.opencontainers.image."


def manifest_annotations(labels: Mapping[str, str], inputs: str | None) -> dict[str, str]:
    """The annotations of an image's manifest, in name order: OCI's own labels, the pin list, the inputs' hash.

    Args:
        labels: The image's labels; an annotation never says what the image itself does not.
        inputs: Hash of what decided the image, where that is known.
    """
    found = {name: value for name, value in labels.items() if name.startswith(_OCI) or name == PINS_LABEL}
    if inputs is not None:
        found[INPUTS] = inputs
    return dict(sorted(found.items()))
