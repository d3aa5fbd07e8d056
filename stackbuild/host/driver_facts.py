"""What the facts say of a driver: its branch, end of life, and whether a reported CUDA maximum is its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackbuild.compat.versions import parse_cuda
from stackbuild.facts.rows import DriverBranch
from stackbuild.facts.tables import Facts

# The versions that the host model takes; anything else in a tool's output is no version.
_DRIVER = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,4}){1,2}")
_CUDA = re.compile(r"([0-9]{1,3}\.[0-9]{1,3})(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class DriverCuda:
    """The CUDA maximum that counts for containers on a host.

    Attributes:
        max_cuda: Major and minor; None when unknown.
        note: Why it is not what the tool printed; empty when it is.
    """

    max_cuda: str | None
    note: str = ""


def driver_version(text: str | None) -> str | None:
    """``text`` when it is a driver version, else None (``N/A``, ``ERR!``)."""
    return text if text is not None and _DRIVER.fullmatch(text) else None


def cuda_version(text: str | None) -> str | None:
    """Major and minor of a CUDA version, or None (``N/A``, ``ERR!``)."""
    match = _CUDA.fullmatch(text) if text is not None else None
    return match[1] if match else None


def driver_branch(driver: str | None, facts: Facts) -> DriverBranch | None:
    """The branch of a driver, or None when it is unknown to the facts."""
    return facts.driver_branch(int(driver.split(".")[0])) if driver else None


def settled_max_cuda(driver: str | None, reported: str | None, facts: Facts) -> DriverCuda:
    """The CUDA maximum of the host's own driver.

    A tool that runs where a cuda-compat library is loaded first prints that library's level. Other
    containers do not get that library, so the driver's own level, from the facts, is what counts.

    Args:
        driver: The kernel-mode driver's version, or None.
        reported: What a tool printed as CUDA version, or None.
        facts: The fact tables.
    """
    if reported is None:
        return DriverCuda(None)
    row = driver_branch(driver, facts)
    if row is None or row.max_cuda is None or row.confidence in ("medium", "uncertain"):
        return DriverCuda(reported)
    if parse_cuda(reported) <= parse_cuda(row.max_cuda):
        return DriverCuda(reported)
    return DriverCuda(
        row.max_cuda,
        f"CUDA {reported} was reported, and drivers of R{row.branch} have {row.max_cuda}: a cuda-compat "
        f"library was loaded where that was read; {row.max_cuda} counts",
    )
