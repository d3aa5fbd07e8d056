"""What an image stands on, recognised by its labels, its environment, its history and its lowest layer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.inspect import inspect_image
from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.annotate.pin_list import PinList
from stackbuild.scan.scan import Scan

_OURS = re.compile(r"stackbuild: (?!\S+ \S+ from \d+ locked debs)|apt-get install --no-download ")
_BOOTSTRAP = re.compile(r"bootstrap (\S+) (\S+)")
_REFERENCE = re.compile(
    r"(?:docker\.io/)?(?:library/)?(?P<image>[^@]+?):(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]*)"
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OCI_BASE = "org.opencontainers.image.base"
# What the history of NVIDIA's CUDA images has and no layer above them.
_NVIDIA_STEP = re.compile(
    r"NVIDIA CORPORATION|NVARCH|NV_[A-Z]|NVIDIA_REQUIRE|NGC-DL-CONTAINER|nvidia_entrypoint|cuda-keyring"
)
_NVIDIA_VARIABLE = re.compile(r"NV_\w+|NVARCH|CUDA_VERSION|NVIDIA_\w+|NCCL_VERSION|CUDNN_VERSION")
_NVIDIA_ENTRYPOINT = ("/opt/nvidia/nvidia_entrypoint.sh",)
_ONE_NAME_SINCE = (12, 4)  # from this CUDA on the tags say cudnn, before it cudnn8 or cudnn9


@dataclass(frozen=True)
class RecognisedBase:
    """The base of an image.

    Attributes:
        spec: The value of ``base`` in a spec; None when no spec can have it.
        layers: How many of the image's layers are the base's.
        variables: Names of environment variables that come with it.
        entrypoint: Its entrypoint; empty for none or unknown.
        command: Its command.
        labels: Names of labels that come with it.
        notes: What is to be checked about it.
    """

    spec: Mapping[str, Any] | None
    layers: int = 1
    variables: frozenset[str] = frozenset()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    labels: frozenset[str] = frozenset()
    notes: tuple[str, ...] = field(default=())


def recognise_base(scan: Scan) -> RecognisedBase:
    """Recognise an image's base.

    In order: a pin list of stackbuild's; the labels that name the base (OCI image specification 1.1,
    annotations.md); the environment of NVIDIA's CUDA images; the distribution of the lowest layer.
    """
    return _of_pins(scan) or _of_labels(scan) or _of_nvidia(scan) or _of_distribution(scan)


def pins_below(scan: Scan) -> PinList | None:
    """The pin list of a stack's image, or of the one that this image was built on."""
    description = scan.files.description
    if PINS_LABEL not in description.labels:
        return None
    pins = pins_that_hold(description.labels, description.diff_ids)
    if pins is not None:
        return pins
    return inspect_image(scan.name, description.labels, description.diff_ids).derived_from


def _of_pins(scan: Scan) -> RecognisedBase | None:
    pins = pins_below(scan)
    if pins is None:
        return None
    commands = scan.files.description.commands
    layers = next((number for number, text in enumerate(commands) if _OURS.match(text)), 0) or 1
    bootstrap = _BOOTSTRAP.fullmatch(pins.base.name)
    if bootstrap is not None:
        base: dict[str, Any] = {"bootstrap": bootstrap[1], "suite": bootstrap[2]}
        return RecognisedBase(base, 1, command=("/bin/bash",))
    image, _, tag = pins.base.name.rpartition(":")
    base = {"image": image, "tag": tag, "digest": pins.base.digest}
    if image.endswith("nvidia/cuda"):
        return RecognisedBase(base, layers, **_nvidia_parts(scan))
    return RecognisedBase(base, layers)


def _of_labels(scan: Scan) -> RecognisedBase | None:
    labels = scan.files.description.labels
    match = _REFERENCE.fullmatch(labels.get(f"{_OCI_BASE}.name", ""))
    if match is None:
        return None
    digest = labels.get(f"{_OCI_BASE}.digest", "")
    base = {"image": match["image"], "tag": match["tag"]}
    if _DIGEST.fullmatch(digest):
        base["digest"] = digest
    notes = (
        "base: named by the image's labels; where its layers end is not known, so apt counts from the lowest.",
    )
    return RecognisedBase(
        base, 1, labels=frozenset({f"{_OCI_BASE}.name", f"{_OCI_BASE}.digest"}), notes=notes
    )


def _of_nvidia(scan: Scan) -> RecognisedBase | None:
    environment = scan.files.description.environment
    release = environment.get("CUDA_VERSION", "")
    if "NVARCH" not in environment or not re.fullmatch(r"\d+\.\d+\.\d+", release) or not scan.os.key:
        return None
    flavour = "base"
    if "NV_CUDA_LIB_VERSION" in environment:
        flavour = "devel" if "NV_CUDA_CUDART_DEV_VERSION" in environment else "runtime"
    cudnn = environment.get("NV_CUDNN_VERSION", "").partition(".")[0]
    if cudnn:
        numbers = tuple(int(part) for part in release.split(".")[:2])
        flavour = f"cudnn{'' if numbers >= _ONE_NAME_SINCE else cudnn}-{flavour}"
    base = {"image": "nvidia/cuda", "tag": f"{release}-{flavour}-{scan.os.key}"}
    layers = _nvidia_layers(scan)
    notes = [
        "base: the tag is put together from the image's environment (CUDA_VERSION, NV_*); check that it exists."
    ]
    if not layers:
        notes.append("base: the history does not say where its layers end, so apt counts from the lowest.")
    return RecognisedBase(base, layers or 1, notes=tuple(notes), **_nvidia_parts(scan))


def _nvidia_parts(scan: Scan) -> dict[str, Any]:
    environment = scan.files.description.environment
    return {
        "variables": frozenset(name for name in environment if _NVIDIA_VARIABLE.fullmatch(name)),
        "entrypoint": _NVIDIA_ENTRYPOINT,
        "command": ("/bin/bash",),
        "labels": frozenset({"maintainer", "org.opencontainers.image.ref.name", "com.nvidia.volumes.needed"}),
    }


def _nvidia_layers(scan: Scan) -> int:
    """How many layers the history has up to NVIDIA's last step; 0 when it does not say."""
    history = scan.files.description.config.get("history")
    steps = [step for step in history if isinstance(step, Mapping)] if isinstance(history, Sequence) else []
    last = max(
        (
            number
            for number, step in enumerate(steps)
            if _NVIDIA_STEP.search(str(step.get("created_by") or ""))
        ),
        default=-1,
    )
    layers = sum(not step.get("empty_layer") for step in steps[: last + 1])
    return layers if layers <= len(scan.files.layers) else 0


def _of_distribution(scan: Scan) -> RecognisedBase:
    os = scan.os
    tag = {"debian": os.codename, "ubuntu": os.version_id}.get(os.id, "")
    if not tag:
        return RecognisedBase(None)
    return RecognisedBase(
        {"image": os.id, "tag": tag},
        command=("bash",) if os.id == "debian" else ("/bin/bash",),
        notes=(
            f"base: nothing names it; {os.id}:{tag} is what the lowest layer looks like. If the image was built on "
            "another one, name that.",
        ),
    )
