"""CUDA, driver and compute-capability versions as tuples that compare."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class CudaVersion(NamedTuple):
    """A CUDA release, major and minor; the update number never decides compatibility."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class ComputeCapability(NamedTuple):
    """A GPU's compute capability."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def sm(self) -> str:
        """The name of its binary architecture, for example ``sm_89``."""
        return f"sm_{self.major}{self.minor}"


DriverVersion = tuple[int, ...]


def parse_cuda(text: str) -> CudaVersion:
    """``"12.8.1"``, ``"12.8"`` or ``"12"`` as a CUDA version.

    Raises:
        ValueError: The text does not begin with a number.
    """
    match = re.match(r"(\d+)(?:\.(\d+))?", text)
    if match is None:
        raise ValueError(f"not a CUDA version: {text!r}")
    return CudaVersion(int(match[1]), int(match[2] or 0))


def parse_variant(variant: str) -> CudaVersion | None:
    """The CUDA version of a wheel variant such as ``cu126``; None for ``cpu`` and others without CUDA."""
    match = re.fullmatch(r"cu(\d{2,3})(\d)", variant)
    return CudaVersion(int(match[1]), int(match[2])) if match else None


def parse_driver(text: str) -> DriverVersion:
    """``"535.104.05"`` as ``(535, 104, 5)``.

    Raises:
        ValueError: The text is not numbers separated by dots.
    """
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise ValueError(f"not a driver version: {text!r}")
    return tuple(int(part) for part in text.split("."))


@cache
def parse_compute_capability(text: str) -> ComputeCapability:
    """``"8.9"``, ``"sm_89"``, ``"compute_120"`` or ``"120"`` as a compute capability.

    Raises:
        ValueError: The text is none of these.
    """
    match = re.fullmatch(r"(\d{1,2})\.(\d)", text) or re.fullmatch(
        r"(?:sm_|compute_)?(\d{1,2})(\d)[af]?", text
    )
    if match is None:
        raise ValueError(f"not a compute capability: {text!r}")
    return ComputeCapability(int(match[1]), int(match[2]))
