"""Which pins two sides can be compared by: what one of them does not know has not moved."""

from __future__ import annotations

from stackbuild.drift.pins import Pins, is_of_configuration
from stackbuild.drift.subject import Subject
from stackbuild.spec.known_frameworks import KNOWN_FRAMEWORKS

# Pins that a side may not know at all, which is not the same as having none.
_NOT_ALWAYS_KNOWN = ("stack", "base", "base_digest", "glibc")
_ENTRYPOINT = "entrypoint"  # known wherever a configuration is
_GPU_CODE = "compute_capabilities "


def comparable_pins(before: Subject, after: Subject) -> tuple[Pins, Pins]:
    """The pins of both without those that one does not know, or knows otherwise.

    A folder has no configuration. What was not built by stackbuild does not say of which stack it is, and mostly
    not on which base. A lock's GPU code is what the facts say of its wheels, an image's is what is in it; other
    tools' SBOMs have none.
    """
    left_out = {name for name in _NOT_ALWAYS_KNOWN if name not in before.pins or name not in after.pins}
    if any(side.side.kind == "image" and _ENTRYPOINT not in side.pins for side in (before, after)):
        left_out |= {name for name in (*before.pins, *after.pins) if is_of_configuration(name)}
    kinds = {before.side.kind, after.side.kind}
    silent = any(
        side.side.kind == "sbom" and not any(name.startswith(_GPU_CODE) for name in side.pins)
        for side in (before, after)
    )
    gpu_code = {name for name in (*before.pins, *after.pins) if name.startswith(_GPU_CODE)}
    # A library that came or went with its package says so as a package; of frameworks it is a pin all the same.
    left_out |= {
        name
        for name in gpu_code
        if (name not in before.pins or name not in after.pins)
        and name.removeprefix(_GPU_CODE) not in KNOWN_FRAMEWORKS
    }
    if silent or ("lock" in kinds and len(kinds) > 1):
        left_out |= gpu_code
    kept = (
        {name: value for name, value in side.pins.items() if name not in left_out} for side in (before, after)
    )
    return next(kept), next(kept)
