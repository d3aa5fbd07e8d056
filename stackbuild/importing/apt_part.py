"""The debs of an image beyond its base, as a spec asks for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackbuild.counting import counted
from stackbuild.sbom.system_graph import SystemGraph
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.scan import Scan

_STATUS = "var/lib/dpkg/status"


@dataclass(frozen=True)
class AptPart:
    """Entries of ``apt``, and what could not be expressed."""

    packages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def apt_part(scan: Scan, base_layers: int, python: str) -> AptPart:
    """The debs that were asked for on top of the base.

    Asked for is what apt did not mark as automatic and nothing else that was added depends on. What the
    spec's Python brings is left out.

    Args:
        scan: The image.
        base_layers: How many of its layers are the base's.
        python: As in the spec.
    """
    before = _of_layers(scan, base_layers)
    debs = [number for number, package in enumerate(scan.packages) if package.kind == "deb"]
    if not debs:
        return AptPart()
    added = [number for number in debs if scan.packages[number].name not in before]
    upgraded = [
        package.name
        for number in debs
        if (package := scan.packages[number]).name in before and package.version != before[package.name]
    ]
    automatic = set(scan.files.fact("apt-automatic", "var/lib/apt/extended_states") or ())
    asked = [number for number in added if scan.packages[number].name not in automatic]
    graph = SystemGraph(scan)
    roots = _roots(asked, graph)
    if python != "none":
        own = re.compile(
            rf"(lib)?python{re.escape(python)}(-minimal|-stdlib|-venv|-distutils)?|python3(-\w+)?"
        )
        roots = [number for number in roots if not own.fullmatch(scan.packages[number].name)]
    notes = []
    if upgraded:
        notes.append(
            f"apt: upgraded since the base: {counted(len(upgraded), 'package')} ({', '.join(upgraded[:5])}"
            f"{', …' if len(upgraded) > 5 else ''}); a newer base has them."
        )
    gone = sorted(set(before) - {scan.packages[number].name for number in debs})
    if gone:
        notes.append(f"apt: packages of the base were removed, which a stack does not do: {', '.join(gone)}.")
    return AptPart(tuple(_entry(scan.packages[number]) for number in roots), tuple(notes))


def _entry(package: SystemPackage) -> str:
    return f"{package.name}={package.version}"


def _of_layers(scan: Scan, layers: int) -> dict[str, str]:
    """Name → version of the debs that the image had up to a layer."""
    for layer in reversed(scan.files.layers[:layers]):
        rows = layer.facts.get("dpkg", {}).get(_STATUS)
        if rows is not None:
            return {row[0]: row[1] for row in rows}
    return {}


def _roots(asked: list[int], graph: SystemGraph) -> list[int]:
    """Those that none of the others leads to; of a circle the first."""
    below: set[int] = set()
    roots: list[int] = []
    for number in asked:
        if number in below:
            continue
        reached: set[int] = set()
        ahead = [number]
        while ahead:
            for other in graph.needs(ahead.pop()):
                if other not in reached:
                    reached.add(other)
                    ahead.append(other)
        below |= reached - {number}
        roots = [root for root in roots if root not in reached]
        roots.append(number)
    return roots
