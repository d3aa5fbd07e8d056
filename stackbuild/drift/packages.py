"""The packages of two sides, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stackbuild.digests import short_hex
from stackbuild.drift.breaking import package_breaks
from stackbuild.drift.model import PackageChange

_PYTHON_FOLDER = re.compile(r"/python\d+(?:\.\d+)*/")


@dataclass(frozen=True, slots=True)
class Package:
    """One package of a side.

    Attributes:
        kind: python, deb, rpm, apk, conda, cuda, or another package URL type.
        name: Its name, of Python distributions the normalised one.
        version: Its version.
        place: Of a Python distribution its environment, of a CUDA library its folder; empty where unknown.
        licences: As it declares them; None where the side does not say.
        sha256: Of the file it was installed from, in hex; empty where the side does not say.
        layer: The diff ID of the layer that brings it; empty where unknown.
        architecture: Of a package of the distribution; empty where unknown.
    """

    kind: str
    name: str
    version: str
    place: str = ""
    licences: tuple[str, ...] | None = None
    sha256: str = ""
    layer: str = ""
    architecture: str = ""

    @property
    def sort_key(self) -> tuple[str, str, str, str, str]:
        """For an order that does not depend on where the package was read."""
        return (self.kind, self.name, self.place, self.architecture, self.version)


@dataclass(frozen=True)
class PackageSet:
    """What a side knows of its packages.

    Attributes:
        packages: The packages.
        partial: Kinds of which it knows only some, so that what it lacks may be there all the same.
        python_place: The only environment whose distributions it knows; empty for all.
    """

    packages: tuple[Package, ...] = ()
    partial: frozenset[str] = frozenset()
    python_place: str = ""


Key = tuple[str, str, str, str]


def without_version(place: str) -> str:
    """A place without the version of Python in it: a newer Python moves every package, and none changes."""
    return _PYTHON_FOLDER.sub("/python3/", place)


def compare_packages(before: PackageSet, after: PackageSet) -> tuple[PackageChange, ...]:
    """What came, went or changed, by kind and name.

    Args:
        before: One side's packages.
        after: The other's.
    """
    partial = before.partial | after.partial
    only = {without_version(known.python_place) for known in (before, after) if known.python_place}
    sides = [_comparable(side.packages, only) for side in (before, after)]
    placed = all(item.place for side in sides for item in side if item.kind == "python")
    architectures = all(item.architecture for side in sides for item in side if item.kind == "deb")
    then, now = (_by_key(side, placed=placed, architectures=architectures) for side in sides)
    changes = []
    for key in sorted({*then, *now}):
        old, new = then.get(key, ()), now.get(key, ())
        if key[0] in partial and not (old and new):
            continue
        change = _change(old, new)
        if change is not None:
            changes.append(change)
    return tuple(changes)


def _comparable(packages: Iterable[Package], only: set[str]) -> list[Package]:
    return [
        item
        for item in packages
        if not only or item.kind != "python" or not item.place or without_version(item.place) in only
    ]


def _by_key(
    packages: Iterable[Package], *, placed: bool, architectures: bool
) -> Mapping[Key, tuple[Package, ...]]:
    found: dict[Key, list[Package]] = {}
    for item in sorted(packages, key=lambda item: item.sort_key):
        place = without_version(item.place) if placed or item.kind != "python" else ""
        architecture = item.architecture if architectures and item.kind == "deb" else ""
        found.setdefault((item.kind, item.name, place, architecture), []).append(item)
    return {key: tuple(items) for key, items in found.items()}


def _change(old: Sequence[Package], new: Sequence[Package]) -> PackageChange | None:
    """What became of the packages of one name in one place; mostly there is one on either side."""
    some = (new or old)[0]
    change = PackageChange(
        kind=some.kind,
        name=some.name,
        place=some.place,
        change="changed" if old and new else "added" if new else "removed",
        before=_joined(item.version for item in old),
        after=_joined(item.version for item in new),
    )
    if old and new:
        what = _what(old, new)
        if not what:
            return None
        change = change.model_copy(update={"what": what, **_told_apart(what, old, new)})
    versions = (_joined(item.version for item in old), _joined(item.version for item in new))
    why = package_breaks(some.name, *versions)
    return change.model_copy(update={"breaking": bool(why), "why": why})


def _what(old: Sequence[Package], new: Sequence[Package]) -> tuple[str, ...]:
    what = []
    if _distinct(item.version for item in old) != _distinct(item.version for item in new):
        what.append("version")
    if all(item.licences is not None for item in (*old, *new)) and {item.licences for item in old} != {
        item.licences for item in new
    }:
        what.append("licence")
    stated = all(item.sha256 for item in (*old, *new))
    if "version" not in what and stated and {item.sha256 for item in old} != {item.sha256 for item in new}:
        what.append("hash")
    return tuple(what)


def _told_apart(what: Sequence[str], old: Sequence[Package], new: Sequence[Package]) -> dict[str, str]:
    """The versions of both sides, with the licences and hashes that differ."""
    told = {}
    for name, items in (("before", old), ("after", new)):
        parts = [_joined(item.version for item in items)]
        if "licence" in what:
            licences = sorted({text for item in items for text in item.licences or ()})
            parts.append(f"licence {', '.join(licences) or 'not stated'}")
        if "hash" in what:
            parts.append(f"sha256 {_joined(short_hex(item.sha256) for item in items)}")
        told[name] = "; ".join(part for part in parts if part)
    return told


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _joined(values: Iterable[str]) -> str:
    return ", ".join(_distinct(value for value in values if value))
