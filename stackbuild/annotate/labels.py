"""Labels that make an image say what it is: OCI's own, and one JSON label with the pin list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import Field, ValidationError

from stackbuild.annotate.pin_list import PinList, PinModel
from stackbuild.annotate.tags import content_hash, image_version
from stackbuild.errors import NotJudgedError
from stackbuild.spec.model import ImageBaseSpec, StackSpec

PINS_LABEL = "io.stackbuild.pins"
LABEL_SCHEMA = 1


class PinsLabel(PinModel):
    """The JSON in the label ``io.stackbuild.pins``."""

    schema_: int = Field(default=LABEL_SCHEMA, alias="schema")
    pins: PinList
    diff_ids: tuple[str, ...] = Field(
        default=(),
        description="of all layers as they were built; empty where the builder could not know them",
    )


def image_labels(
    spec: StackSpec, pins: PinList, diff_ids: Sequence[str], *, created: str, source: str | None = None
) -> dict[str, str]:
    """Return all labels of an image, the spec's own among them, in name order.

    The spec's labels win over OCI's (a team knows its source better), never over stackbuild's. The meaning of the
    ``org.opencontainers.image.*`` names is that of the OCI image specification 1.1, annotations.md.

    Args:
        spec: The stack.
        pins: Its pin list.
        diff_ids: sha256 digests of all layers, the base's first; empty where they are not known yet.
        created: RFC 3339 time of the newest input.
        source: Where the spec is kept; ``stacks/NAME.yaml`` when None, so that the labels are the same everywhere.
    """
    oci = {
        "title": spec.name,
        "version": image_version(pins),
        # The content, not a commit: a commit that changes nothing here must not change the image.
        "revision": content_hash(pins),
        "source": source or f"stacks/{spec.name}.yaml",
        "created": created,
    }
    if spec.summary:
        oci["description"] = spec.summary
    if isinstance(spec.base, ImageBaseSpec):
        oci["base.name"] = _full_reference(pins.base.name)
        oci["base.digest"] = pins.base.digest
    label = PinsLabel(pins=pins, diff_ids=tuple(diff_ids))
    labels = {f"org.opencontainers.image.{key}": value for key, value in oci.items()}
    labels |= spec.image.labels
    labels[PINS_LABEL] = json.dumps(
        label.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True, separators=(",", ":")
    )
    return dict(sorted(labels.items()))


def read_pins_label(labels: Mapping[str, str], image: str) -> PinsLabel:
    """Return what an image's label says.

    Args:
        labels: The image's labels.
        image: Its reference, for the error.

    Raises:
        NotJudgedError: It has no such label (``no-pin-list``), or one this version cannot read
            (``pin-list-unreadable``).
    """
    text = labels.get(PINS_LABEL)
    if text is None:
        raise NotJudgedError(
            f"it has no pin list (label {PINS_LABEL}), so it was not built by stackbuild",
            code="no-pin-list",
            where=image,
            do="Describe it by a spec with `external:` to check and verify it.",
        )
    try:
        label = PinsLabel.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise NotJudgedError(
            f"its pin list cannot be read: {place or 'the label'}: {first['msg']}",
            code="pin-list-unreadable",
            where=image,
            do="It may come from a newer stackbuild.",
        ) from None
    if label.schema_ != LABEL_SCHEMA:
        raise NotJudgedError(
            f"its pin list has schema {label.schema_}, and this version reads {LABEL_SCHEMA}",
            code="pin-list-unreadable",
            where=image,
            do="Use a newer stackbuild.",
        )
    return label


def _full_reference(name: str) -> str:
    first = name.split("/", 1)[0]
    has_registry = "/" in name and ("." in first or ":" in first or first == "localhost")
    if has_registry:
        return name
    return f"docker.io/{name}" if "/" in name else f"docker.io/library/{name}"
