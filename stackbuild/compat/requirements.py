"""NVIDIA_REQUIRE_* as the container toolkit evaluates it; newer toolkits and CDI no longer do (DESIGN §3.4).

Grammar (nvidia-container-toolkit, internal/requirements/constraints, 2026-08): a space is OR, a comma is
AND, several variables are AND; properties are cuda, arch, driver and brand; operators !=, <=, >=, =, <, >;
an unknown property is ignored; NVIDIA_REQUIRE_JETPACK* is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from stackbuild.compat.subject import GpuOffer, HostOffer
from stackbuild.findings import Finding, Verdict

_CONSTRAINT = re.compile(r"([a-z]+)(!=|<=|>=|=|<|>)([^!<>=]+)")
_PROPERTIES = frozenset({"cuda", "arch", "driver", "brand"})
# Properties that a host may have and not tell, in words.
_OF_THE_GPU = {"brand": "brand", "arch": "compute capability"}


@dataclass(frozen=True)
class Constraint:
    """One comparison, for example ``cuda>=12.8``."""

    property: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.property}{self.operator}{self.value}"


Alternative = tuple[Constraint, ...]


@cache
def parse_requirement(value: str) -> tuple[Alternative, ...]:
    """The alternatives of one NVIDIA_REQUIRE_* value, each a conjunction; unknown properties are left out.

    Raises:
        ValueError: A term is not a comparison.
    """
    alternatives = []
    for term in value.split():
        conjunction = []
        for text in term.split(","):
            if not text:
                continue
            match = _CONSTRAINT.fullmatch(text)
            if match is None:
                raise ValueError(f"{text!r} is not a comparison such as cuda>=12.8")
            if match[1] in _PROPERTIES:
                conjunction.append(Constraint(match[1], match[2], match[3]))
        alternatives.append(tuple(conjunction))
    return tuple(alternatives)


def _version(text: str) -> tuple[int, ...] | None:
    return tuple(int(part) for part in text.split(".")) if re.fullmatch(r"\d+(\.\d+)*", text) else None


_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def holds(constraint: Constraint, properties: Mapping[str, str]) -> bool:
    """Whether one comparison holds; a property the host does not have makes it false.

    Versions compare number by number, the shorter one filled with zeros; brands only by = and !=.
    """
    actual = properties.get(constraint.property)
    if actual is None:
        return False
    if constraint.property == "brand":
        equal = actual.lower() == constraint.value.lower()
        return equal if constraint.operator == "=" else not equal if constraint.operator == "!=" else False
    left, right = _version(actual), _version(constraint.value)
    if left is None or right is None:
        return False
    length = max(len(left), len(right))
    return _COMPARE[constraint.operator](_padded(left, length), _padded(right, length))


def _padded(version: tuple[int, ...], length: int) -> tuple[int, ...]:
    return version + (0,) * (length - len(version))


def satisfied(alternatives: Iterable[Alternative], properties: Mapping[str, str]) -> bool:
    """Whether any alternative holds; no alternatives at all is satisfied."""
    listed = tuple(alternatives)
    return not listed or any(all(holds(item, properties) for item in conjunction) for conjunction in listed)


def _properties(host: HostOffer, gpu: GpuOffer | None) -> dict[str, str]:
    properties = {}
    if host.max_cuda is not None:
        properties["cuda"] = str(host.max_cuda)
    if host.driver is not None:
        properties["driver"] = host.driver_text
    if gpu is not None:
        if gpu.compute_capability is not None:
            properties["arch"] = str(gpu.compute_capability)
        brand = gpu.brand or {"datacenter": "tesla", "geforce": "geforce"}.get(gpu.kind or "")
        if brand is not None:
            properties["brand"] = brand
    return properties


def _reason(alternatives: tuple[Alternative, ...], properties: Mapping[str, str]) -> tuple[str, str]:
    """(the comparison that matters, its property): the plain one-term alternative, else the nearest one."""
    plain = [conjunction[0] for conjunction in alternatives if len(conjunction) == 1]
    failing = next((item for item in plain if item.property in ("cuda", "driver", "arch")), None)
    if failing is None:
        nearest = max(
            alternatives, key=lambda conjunction: sum(holds(item, properties) for item in conjunction)
        )
        failing = next(item for item in nearest if not holds(item, properties))
    return str(failing), failing.property


def _open_question(alternatives: tuple[Alternative, ...], properties: Mapping[str, str]) -> str | None:
    """What must be known to tell whether they hold: ``brand``, ``compute capability``; None when nothing does."""
    unknown = {name: words for name, words in _OF_THE_GPU.items() if name not in properties}
    rest = [
        tuple(item for item in conjunction if item.property not in unknown) for conjunction in alternatives
    ]
    asked = {item.property for conjunction in alternatives for item in conjunction}
    if not satisfied(rest, properties):
        return None
    return " and ".join(words for name, words in unknown.items() if name in asked) or None


def _branches(alternatives: tuple[Alternative, ...], brand: str | None) -> list[str]:
    """The driver branches that the alternatives allow for a brand, for example ``R535``."""
    branches = set()
    for conjunction in alternatives:
        brands = {item.value for item in conjunction if item.property == "brand" and item.operator == "="}
        lows = [item.value for item in conjunction if item.property == "driver" and item.operator == ">="]
        if lows and (not brands or brand in brands):
            branches.add(int(lows[0].split(".")[0]))
    return [f"R{branch}" for branch in sorted(branches)]


def requirement_met(value: str, host: HostOffer) -> bool:
    """Whether every GPU of the host meets a NVIDIA_REQUIRE_* value; one that cannot be read is met by none."""
    try:
        alternatives = parse_requirement(value)
    except ValueError:
        return False
    return all(satisfied(alternatives, _properties(host, gpu)) for gpu in host.gpus or (None,))


def judge_requirement(name: str, value: str, host: HostOffer) -> Finding:
    """Does the host meet one NVIDIA_REQUIRE_* variable? Codes ``driver-too-old`` and ``requirement-not-met``.

    Args:
        name: The variable, for example ``NVIDIA_REQUIRE_CUDA``.
        value: Its value.
        host: The host; every one of its GPUs must meet the requirement.
    """
    try:
        alternatives = parse_requirement(value)
    except ValueError as error:
        return Finding(
            code="requirement-malformed",
            verdict=Verdict.FAIL,
            subject=name,
            measured=value,
            summary=f"{name} cannot be read: {error}.",
            next_step=f"Mend {name} in the image, for example cuda>=12.8.",
        )
    if host.max_cuda is None and host.driver is None:
        return Finding(
            code="driver-too-old",
            verdict=Verdict.SKIP,
            subject=name,
            required=value.split(" ")[0],
            summary=f"{name} could not be evaluated: the host's driver is not known.",
        )
    unevaluated = host.injection in ("cdi", "jit-cdi")
    note = (
        "; this host injects devices by CDI, where nothing but stackbuild evaluates it" if unevaluated else ""
    )
    details: dict[str, object] = {"variable": name, "evaluated_by_toolkit": not unevaluated}
    for gpu in host.gpus or (None,):
        properties = _properties(host, gpu)
        if satisfied(alternatives, properties):
            continue
        if (open_question := _open_question(alternatives, properties)) is not None:
            return Finding(
                code="driver-too-old",
                verdict=Verdict.SKIP,
                subject=name,
                measured=f"CUDA maximum {host.max_cuda or '?'}, driver {host.driver_text or '?'}",
                required=value.split(" ")[0],
                summary=f"{name} is met for some GPUs and not for others, and the {open_question} of "
                f"{gpu.name if gpu else 'this host'} is not known.",
                next_step="Name the GPU, or give a host file made by 'stackbuild host --format json' on that machine.",
                details=details,
            )
        reason, which = _reason(alternatives, properties)
        allowed = _branches(alternatives, properties.get("brand"))
        brand = properties.get("brand", "unknown")
        theirs = f"{brand} GPUs" if "brand" in properties else "GPUs of an unknown brand"
        measured = f"CUDA maximum {host.max_cuda or '?'}, driver {host.driver_text or '?'}, brand {brand}"
        also = ""
        if any(item.property == "driver" for conjunction in alternatives for item in conjunction):
            also = (
                f", and none of the driver branches it allows for {theirs} ({', '.join(allowed)}) is this one"
                if allowed
                else f", and it allows no older driver branch for {theirs}"
            )
        if which in ("cuda", "driver"):
            summary = f"The image demands {reason} ({name}), this host offers CUDA {host.max_cuda or '?'}{also}{note}."
            return Finding(
                code="driver-too-old",
                verdict=Verdict.FAIL,
                subject=name,
                measured=measured,
                required=reason,
                summary=summary,
                next_step="Update the driver, or use an image of an older CUDA."
                + (
                    " The code in it could run by minor-version compatibility; only the image's own demand is stricter."
                    if _same_major(reason, host)
                    else ""
                ),
                details={
                    **details,
                    "minor_compat_possible": _same_major(reason, host),
                    "allowed_branches": allowed,
                },
            )
        return Finding(
            code="requirement-not-met",
            verdict=Verdict.FAIL,
            subject=name,
            measured=measured,
            required=reason,
            summary=f"The image demands {reason} ({name}), and {gpu.name if gpu else 'this host'} does not meet it{note}.",
            next_step="Run it on a host that meets the requirement, or use another image.",
            details=details,
        )
    return Finding(
        code="driver-too-old",
        verdict=Verdict.PASS,
        subject=name,
        measured=f"CUDA maximum {host.max_cuda or '?'}, driver {host.driver_text or '?'}",
        required=value.split(" ")[0],
        summary=f"{name} is met{note}.",
        details=details,
    )


def _same_major(reason: str, host: HostOffer) -> bool:
    match = re.fullmatch(r"cuda>=?(\d+).*", reason)
    return bool(match and host.max_cuda is not None and int(match[1]) == host.max_cuda.major)
