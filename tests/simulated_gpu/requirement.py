"""NVIDIA_REQUIRE_* as nvidia-container-cli evaluates it (libnvidia-container 1.17, src/cli/dsl.c and configure.c).

A space is OR, a comma AND, several variables are AND; the message names the first alternative only.
Standard library only: the hook imports it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_TERM = re.compile(r"([^<>=!]+)(=|!=|<=|<|>=|>)([^<>=!].*)")
_COMPARE: dict[str, Callable[[list[int], list[int]], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


class RequirementError(Exception):
    """What nvidia-container-cli says after ``requirement error: ``."""


def require(requirements: Sequence[str], properties: Mapping[str, str]) -> None:
    """Check all requirements against one device.

    Args:
        requirements: Values of NVIDIA_REQUIRE_*.
        properties: cuda and driver; arch and brand too unless no device is visible, then those hold.

    Raises:
        RequirementError: One is not met, or is not an expression.
    """
    for requirement in requirements:
        alternatives = requirement.split()
        if not alternatives or any(_all_hold(term, properties) for term in alternatives):
            continue
        message = f"unsatisfied condition: {alternatives[0]}"
        if alternatives[0].startswith("cuda>="):
            message += ", please update your driver to a newer version, or use an earlier cuda container"
        raise RequirementError(message)


def _all_hold(alternative: str, properties: Mapping[str, str]) -> bool:
    return all(_holds(term, properties) for term in alternative.split(",") if term)


def _holds(term: str, properties: Mapping[str, str]) -> bool:
    match = _TERM.fullmatch(term)
    if match is None or match[1].lower() not in ("cuda", "driver", "arch", "brand"):
        raise RequirementError("invalid expression")
    name, operator, value = match[1].lower(), match[2], match[3]
    actual = properties.get(name)
    if actual is None:
        return True
    if name == "brand":
        if operator not in ("=", "!="):
            raise RequirementError("invalid expression")
        return (actual.lower() == value.lower()) is (operator == "=")
    if not re.fullmatch(r"[0-9.]+", value):
        raise RequirementError("invalid expression")
    left, right = (_version(text) for text in (actual, value))
    width = max(len(left), len(right))
    return _COMPARE[operator](*(numbers + [0] * (width - len(numbers)) for numbers in (left, right)))


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part]
