"""Which changes users of an image may have to follow, and why. Pure rules over names and values."""

from __future__ import annotations

import re
from collections.abc import Callable

from stackbuild.compat.requirements import parse_requirement

_FIRST_NUMBER = re.compile(r"(?:\d+:)?v?(\d+)")
_TWO_NUMBERS = re.compile(r"v?(\d+)\.(\d+)")
# A first number this large is a year or a date: it counts time and promises nothing.
_CALENDAR = 1990
_LISTS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
_FOLDER_LISTS = frozenset(_LISTS)
# Variables in which NVIDIA's bases record what they were built from; nothing reads them at run time.
_RECORDED = re.compile(
    r"NV_\w+|NVARCH|NVIDIA_PRODUCT_NAME|NVIDIA_REQUIRE_JETPACK\w*|CUDA_VERSION|NCCL_VERSION"
)

Rule = Callable[[str, str], str]


def pin_breaks(pin: str, before: str, after: str) -> str:
    """Why the move of a pin is breaking, as a sentence; empty when it is not.

    Args:
        pin: Its name, as the drift lists it.
        before: Its value; empty when it was not there.
        after: Its new value; empty when it is gone.
    """
    head, _, rest = pin.partition(" ")
    if head == "env":
        return _variable(rest, before, after)
    if head == "compute_capabilities":
        return _lost_architectures(before, after)
    rule = _RULES.get(pin)
    return rule(before, after) if rule is not None else ""


def package_breaks(name: str, before: str, after: str) -> str:
    """Why the change of a package is breaking; empty when it is not.

    Args:
        name: The package.
        before: Its version; empty when it was not there.
        after: Its new version; empty when it is gone.
    """
    if not after:
        return "What uses it no longer finds it."
    if not before:
        return ""
    old, new = _major(before), _major(after)
    if old is None or new is None or old == new or (old >= _CALENDAR and new >= _CALENDAR):
        return ""
    return f"The major version of {name} moved from {old} to {new}."


def _major(version: str) -> int | None:
    match = _FIRST_NUMBER.match(version)
    return int(match[1]) if match else None


def _two(version: str) -> tuple[int, int] | None:
    match = _TWO_NUMBERS.match(version)
    return (int(match[1]), int(match[2])) if match else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _any_change(why: str) -> Rule:
    return lambda before, after: why if before and before != after else ""


def _major_of(name: str, why: str) -> Rule:
    def rule(before: str, after: str) -> str:
        if not before:
            return ""
        if not after:
            return f"{name} is gone from the image."
        return (
            f"{name} {_major(before)} became {_major(after)}: {why}"
            if _major(before) != _major(after)
            else ""
        )

    return rule


def _minor_of(name: str, why: str) -> Rule:
    def rule(before: str, after: str) -> str:
        if not before:
            return ""
        if not after:
            return f"{name} is gone from the image."
        return why if _two(before) != _two(after) else ""

    return rule


def _glibc(before: str, after: str) -> str:
    old, new = _numbers(before), _numbers(after)
    lowered = bool(old) and bool(new) and new < old
    return "Programs that were built for the newer glibc do not start with an older one." if lowered else ""


def _driver_floor(before: str, after: str) -> str:
    old, new = _numbers(before), _numbers(after)
    if new and (not old or new > old):
        return f"Hosts with a driver older than {after} can no longer run it."
    return ""


def _lost_architectures(before: str, after: str) -> str:
    if before and not after:
        return "It has no GPU code any more."
    lost = [name for name in before.split() if name not in after.split()]
    return f"It has no code for {', '.join(lost)} any more." if lost else ""


def _requirement(before: str, after: str) -> str:
    """NVIDIA_REQUIRE_*: a space is OR, so that further alternatives only let more hosts in."""
    if not after:
        return ""
    try:
        old, new = ({frozenset(item) for item in parse_requirement(value)} for value in (before, after))
    except ValueError:
        return "Hosts are held against another requirement before a container starts."
    if old and old <= new:
        return ""
    return "Hosts whose driver does not meet it refuse to start a container."


def _variable(name: str, before: str, after: str) -> str:
    if name.startswith("NVIDIA_REQUIRE_") and "JETPACK" not in name:
        return _requirement(before, after)
    if not before or _RECORDED.fullmatch(name):
        return ""
    if not after:
        return f"Programs that read {name} no longer find it."
    if name in _FOLDER_LISTS:
        lost = [folder for folder in before.split(":") if folder and folder not in after.split(":")]
        return f"{', '.join(lost)} is no longer searched." if lost else ""
    if name == "NVIDIA_DRIVER_CAPABILITIES" and "all" not in after.split(","):
        lost = sorted(set(before.split(",")) - set(after.split(",")))
        return f"Containers no longer get the driver's {', '.join(lost)} libraries." if lost else ""
    return ""


def _lost_items(what: str) -> Rule:
    def rule(before: str, after: str) -> str:
        lost = [item for item in before.split(", ") if item and item not in after.split(", ")]
        return f"{what} {', '.join(lost)} no longer declared." if lost else ""

    return rule


_RULES: dict[str, Rule] = {
    "os": _any_change("Another release of the distribution has other packages, libraries and paths."),
    "glibc": _glibc,
    "python": _minor_of(
        "Python", "Extension modules, byte-code and environments are made for one minor version of Python."
    ),
    "driver_floor": _driver_floor,
    "cuda": _major_of("CUDA", "what was built against the other does not find its libraries."),
    "cudnn": _major_of("cuDNN", "what was built against the other does not find its libraries."),
    "nccl": _major_of("NCCL", "all ranks of a job need the same, and programs another library."),
    # TensorRT documentation, "Version Compatibility": an engine plan is tied to the version that built it.
    "tensorrt": _minor_of("TensorRT", "Engines are tied to the version of TensorRT that built them."),
    # PyTorch gives no promise for its C++ ABI between minor releases.
    "torch": _minor_of("torch", "Extensions that were compiled against torch have to be compiled again."),
    "torch_variant": _any_change("torch was built for another CUDA, or for none."),
    "onnxruntime": _major_of("ONNX Runtime", "its interfaces may have changed."),
    "onnxruntime_package": _any_change("Another package of ONNX Runtime has other execution providers."),
    "entrypoint": lambda before, after: (
        "Another program gets a container's arguments." if before != after else ""
    ),
    "cmd": _any_change("A container without arguments runs another command."),
    "user": lambda before, after: (
        "Another user owns what containers write, and may read and write other files."
        if before != after
        else ""
    ),
    "workdir": _any_change("Relative paths lead elsewhere."),
    "ports": _lost_items("Ports"),
    "volumes": _lost_items("Volumes"),
}
