"""The tier of a host: how much of stackbuild's judging it can do itself (docs/hosts.md)."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from stackbuild.compat.architecture import judge_gpu_against_driver
from stackbuild.facts.tables import Facts
from stackbuild.host.model import Host
from stackbuild.host.offer import host_offer

NAMES = {
    1: "static judging",
    2: "builds, and verification without a GPU",
    3: "verification on a GPU",
    4: "verification on a supported GPU and driver",
    5: "every gate, profiling included",
}
_PROFILERS = ("nsys", "ncu")


class Tier(NamedTuple):
    """A level from 1 to 5, and what keeps the host from the next; empty at 5."""

    level: int
    reason: str


def tier(host: Host, facts: Facts, today: date) -> Tier:
    """The tier a host qualifies for.

    Args:
        host: Its card.
        facts: The fact tables.
        today: The day on which ends of life are judged.
    """
    if host.docker is None:
        return Tier(1, "no Docker engine answers")
    lacking = _lacks_gpu_in_containers(host)
    if lacking:
        return Tier(2, lacking)
    lacking = _lacks_support(host, facts, today)
    if lacking:
        return Tier(3, lacking)
    missing = [name for name in _PROFILERS if name not in host.profilers]
    if missing:
        return Tier(4, f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there")
    return Tier(5, "")


def _lacks_gpu_in_containers(host: Host) -> str:
    if host.posture not in ("linux", "wsl2"):
        return {
            "macos": "macOS has no CUDA",
            "windows": "containers get GPUs inside WSL2, not on Windows itself",
            "amd": "its GPU is AMD's",
        }[host.posture]
    if host.driver is None:
        return "no NVIDIA driver answers"
    if not host.gpus:
        return "the driver has no GPU"
    if host.injection in (None, "none"):
        return "no NVIDIA Container Toolkit, and no CDI specification: containers get no GPU"
    return ""


def _lacks_support(host: Host, facts: Facts, today: date) -> str:
    if host.driver_branch is None or host.max_cuda is None:
        return f"driver {host.driver} is of a branch that the facts do not know"
    if host.driver_end_of_life is not None and host.driver_end_of_life < f"{today:%Y-%m}":
        return f"driver branch {host.driver_branch} reached its end of life in {host.driver_end_of_life}"
    offer = host_offer(host, facts)
    for gpu in offer.gpus:
        if gpu.compute_capability is None:
            return f"the compute capability of {gpu.name} is unknown"
        if judge_gpu_against_driver(gpu, offer, facts) is not None:
            return f"driver {host.driver} does not drive {gpu.name}"
    return ""
