"""Every torch build on every driver branch and architecture, against an oracle that knows only the raw tables.

The oracle is written from the rules' text and shares no code with the gates.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.judge import HostJudge
from stackbuild.compat.needs import needs
from stackbuild.compat.offer import described_offer
from stackbuild.facts.tables import Facts
from stackbuild.findings import Verdict


@cache
def raw(name: str) -> list[dict[str, Any]]:
    text = files("stackbuild.facts").joinpath(f"{name}.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["rows"]
    return rows


def number(text: str) -> int:
    """12.8 as 1208, so that nothing here compares tuples as the gates do."""
    major, _, minor = text.partition(".")
    return int(major) * 100 + int(minor)


def device_number(architecture: str) -> int:
    return int("".join(character for character in architecture if character.isdigit()))


TEGRA = {53, 62, 72, 87, 101, 110}


def runs(sm: list[str], device: int) -> bool:
    for name in sm:
        built = device_number(name)
        if built == device:
            return True
        if (
            not name.endswith("a")
            and built // 10 == device // 10
            and built < device
            and not {built, device} & TEGRA
        ):
            return True
    return False


def oracle(build: dict[str, Any], driver: str, maximum: str, capability: str, arch: dict[str, Any]) -> bool:
    """Whether torch runs: the driver serves the runtime (minor accepted), and the GPU has code and a driver."""
    branch = int(driver.split(".")[0])
    if arch["min_driver_branch"] and branch < arch["min_driver_branch"]:
        return False
    if arch["last_driver_branch"] and branch > arch["last_driver_branch"]:
        return False
    cuda, top = number(build["cuda"]), number(maximum)
    if arch["last_cuda_major"] and cuda // 100 > arch["last_cuda_major"]:
        return False
    if cuda > top:
        if cuda // 100 != top // 100:
            return False
        floors = {row["cuda_major"]: row["min_driver"] for row in raw("minor_version_floors")}
        have = [int(part) for part in driver.split(".")]
        if have < [int(part) for part in floors[cuda // 100].split(".")]:
            return False
    if runs(build["sm"], device_number(capability.replace(".", ""))):
        return True
    compilable = [
        name for name in build["ptx"] if device_number(name) <= device_number(capability.replace(".", ""))
    ]
    return bool(compilable) and cuda <= top


def test_every_torch_build_on_every_branch_and_architecture() -> None:
    facts = Facts()
    judge = HostJudge(facts)
    branches = [row for row in raw("driver_branches") if row["max_cuda"] and row["last_driver"]]
    architectures = raw("architectures")
    hosts = [
        (branch, arch, described_offer(branch["last_driver"], [arch["compute_capability"]], facts))
        for branch in branches
        for arch in architectures
    ]
    compared = running = 0
    for build in raw("torch_variants"):
        torch = Distribution("torch", f"{build['version']}+{build['variant']}")
        image = needs(Contents("torch", distributions=(torch,)), facts, "minor")
        for branch, arch, host in hosts:
            findings = judge.judge(image, host)
            failing = [finding for finding in findings if finding.verdict is Verdict.FAIL]
            expected = oracle(
                build, branch["last_driver"], branch["max_cuda"], arch["compute_capability"], arch
            )
            assert (not failing) is expected, (
                build["version"],
                build["variant"],
                branch["branch"],
                arch,
                failing,
            )
            compared += 1
            running += expected
    assert compared == len(raw("torch_variants")) * len(branches) * len(architectures)
    assert 0 < running < compared
