"""The pins of two sides, and which of them moved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.annotate.pin_list import PinList
from stackbuild.drift.breaking import pin_breaks
from stackbuild.drift.model import ChangeKind, PinChange
from stackbuild.drift.packages import Package
from stackbuild.facts.tables import Facts

# One side may know a version more exactly than the other: 3.11.2 of a pin list, 3.11 of a folder's name.
_VERSIONS = frozenset(
    ("python", "cuda", "cudnn", "nccl", "torch", "onnxruntime", "tensorrt", "glibc", "os", "driver_floor")
)
_OCI = "org.opencontainers.image."
# What a build writes of itself: it changes with every lock and says nothing that the other pins do not.
_OF_THE_BUILD = frozenset({PINS_LABEL, f"{_OCI}created", f"{_OCI}version", f"{_OCI}revision"})
_SUFFIX = r"(?:-cu\d+)?"
_CUDA_VARIANT = re.compile(r"cu(\d{2})(\d)")

Pins = Mapping[str, str]


def compare_pins(before: Pins, after: Pins, *, only_common: bool = False) -> tuple[PinChange, ...]:
    """The pins that moved, in the order of a pin list, then the configuration's by name.

    Args:
        before: One side's pins by name; an empty value says that the side has none, a missing name that it
            does not know.
        after: The other's.
        only_common: Leave out what one of the sides cannot know.
    """
    names = [name for name in {**before, **after} if not only_common or (name in before and name in after)]
    changes = []
    for name in names:
        old, new = before.get(name, ""), after.get(name, "")
        if _same(name, old, new) and _there(name, before) == _there(name, after):
            continue
        why = pin_breaks(name, old, new)
        there = _there(name, before), _there(name, after)
        kind: ChangeKind = "changed" if all(there) else "added" if there[1] else "removed"
        changes.append(PinChange(pin=name, change=kind, before=old, after=new, breaking=bool(why), why=why))
    return tuple(sorted(changes, key=lambda change: _rank(change.pin)))


def stated_pins(pins: PinList) -> dict[str, str]:
    """A pin list as pins by name; what it does not have is empty. Of hashes only the base's is one of them."""
    floor = pins.driver_floor
    return {
        "stack": pins.stack,
        "os": pins.os,
        "base": pins.base.name,
        "base_digest": pins.base.digest,
        "glibc": pins.glibc,
        "python": pins.python or "",
        "driver_floor": floor.version if floor else "",
        "cuda": pins.cuda or "",
        "cudnn": pins.cudnn or "",
        "nccl": pins.nccl or "",
        "torch": pins.torch or "",
        "torch_variant": pins.torch_variant or "",
        "onnxruntime": pins.onnxruntime or "",
        "onnxruntime_package": pins.onnxruntime_package or "",
        "tensorrt": pins.tensorrt or "",
        **{
            f"compute_capabilities {framework}": " ".join(names)
            for framework, names in sorted(pins.compute_capabilities.items())
        },
    }


def measured_pins(
    packages: Iterable[Package], cuda: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """What packages and libraries say, for a side without a pin list. What is not there is empty.

    The rules are those of a pin list: of CUDA the wheels' runtime counts, else the one torch was built for, else
    the one that the image's environment names, else the library's own.

    Args:
        packages: The side's packages.
        cuda: Versions of CUDA libraries by family, those of wheels and packages among them.
        environment: The image's environment; empty where there is none.
    """
    versions = {item.name: item.version for item in sorted(packages, key=_wheels_last)}
    torch = versions.get("torch", "")
    public, _, local = torch.partition("+")
    runtime = _version(versions, rf"nvidia-cuda-runtime{_SUFFIX}")
    of_torch = _CUDA_VARIANT.fullmatch(local)
    toolkit = (
        runtime
        or (f"{of_torch[1]}.{of_torch[2]}" if of_torch else "")
        or environment.get("CUDA_VERSION", "")
        or cuda.get("cudart", "")
    )
    package = next((name for name in ("onnxruntime-gpu", "onnxruntime") if name in versions), "")
    found = {
        "driver_floor": driver_floor(toolkit),
        "cuda": toolkit,
        "cudnn": _version(versions, rf"nvidia-cudnn{_SUFFIX}")
        or _first(environment, cuda, "NV_CUDNN_VERSION"),
        "nccl": _version(versions, rf"nvidia-nccl{_SUFFIX}") or _first(environment, cuda, "NCCL_VERSION"),
        "torch": public,
        "onnxruntime": versions.get(package, ""),
        "onnxruntime_package": package,
        "tensorrt": _version(versions, rf"tensorrt{_SUFFIX}(?:-libs)?") or cuda.get("tensorrt", ""),
    }
    if local or not torch:  # a wheel of the default index does not say what it was built for
        found["torch_variant"] = local
    return found


def driver_floor(cuda: str) -> str:
    """The oldest driver with which that CUDA works at all; empty where that is not known."""
    major = cuda.partition(".")[0]
    floor = Facts().minor_version_floor(int(major)) if major.isdecimal() else None
    return floor.min_driver if floor else ""


def config_pins(
    config: Mapping[str, Any], environment: Mapping[str, str], labels: Mapping[str, str]
) -> dict[str, str]:
    """How a container of an image starts, as pins (OCI image specification 1.1, config.md; moby, image spec 1.3).

    Args:
        config: The ``config`` part of an image's configuration.
        environment: Its variables.
        labels: Its labels.
    """
    found = {
        "entrypoint": _command(config.get("Entrypoint")),
        "cmd": _command(config.get("Cmd")),
        "user": str(config.get("User") or ""),
        "workdir": str(config.get("WorkingDir") or ""),
        "ports": _names(config.get("ExposedPorts")),
        "volumes": _names(config.get("Volumes")),
        "stop_signal": str(config.get("StopSignal") or ""),
        "healthcheck": _json(config.get("Healthcheck")),
        "shell": _command(config.get("Shell")),
    }
    found |= {f"env {name}": value for name, value in environment.items()}
    return found | {f"label {name}": value for name, value in labels.items() if name not in _OF_THE_BUILD}


def is_of_configuration(pin: str) -> bool:
    """Whether a pin says how containers start, which only an image's configuration does."""
    return pin.startswith(("env ", "label ")) or pin in _CONFIGURATION


def _there(name: str, pins: Pins) -> bool:
    """Whether a side has the pin; a variable or a label may be there and empty."""
    return name in pins and (bool(pins[name]) or name.startswith(("env ", "label ")))


def _same(name: str, before: str, after: str) -> bool:
    if before == after:
        return True
    if name not in _VERSIONS or not (before and after):
        return False
    shorter, longer = sorted((re.split(r"[. ]", before), re.split(r"[. ]", after)), key=len)
    return longer[: len(shorter)] == shorter


_CONFIGURATION = (
    *("entrypoint", "cmd", "user", "workdir", "ports", "volumes", "stop_signal", "healthcheck", "shell"),
)
_ORDER = (
    *("stack", "os", "base", "base_digest", "glibc", "python", "driver_floor", "cuda", "cudnn", "nccl"),
    *("torch", "torch_variant", "onnxruntime", "onnxruntime_package", "tensorrt", "compute_capabilities"),
    *_CONFIGURATION,
)
_RANKS = {name: number for number, name in enumerate((*_ORDER, "env", "label"))}


def _rank(pin: str) -> tuple[int, str]:
    return (_RANKS.get(pin.partition(" ")[0], len(_RANKS)), pin)


def _wheels_last(package: Package) -> tuple[bool, str, str]:
    """So that of a deb and a distribution of one name the distribution counts."""
    return (package.kind == "python", package.place, package.version)


def _version(versions: Mapping[str, str], pattern: str) -> str:
    return next((versions[name] for name in sorted(versions) if re.fullmatch(pattern, name)), "")


def _first(environment: Mapping[str, str], cuda: Mapping[str, str], variable: str) -> str:
    family = "cudnn" if "CUDNN" in variable else "nccl"
    return environment.get(variable, "") or cuda.get(family, "")


def _command(value: object) -> str:
    if value in (None, [], ""):
        return ""
    return (
        _json([str(item) for item in value])
        if isinstance(value, Sequence) and not isinstance(value, str)
        else str(value)
    )


def _names(value: object) -> str:
    return ", ".join(sorted(str(name) for name in value)) if isinstance(value, Mapping) else ""


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if value else ""
