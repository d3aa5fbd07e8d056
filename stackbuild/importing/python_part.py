"""The Python of an image as a spec words it: interpreter, frameworks, packages, each at its exact version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from stackbuild.sbom.python_graph import PythonGraph
from stackbuild.scan.contents.python import PythonDistribution
from stackbuild.scan.scan import Scan
from stackbuild.spec.known_frameworks import KNOWN_FRAMEWORKS

_VENV = "opt/venv/"
_DEBIANS = "usr/lib/python3"
_CHANNEL_FAMILY = ("torch", "torchvision", "torchaudio")
_VARIANT = re.compile(r"cpu|cu[0-9]{3}|rocm[0-9.]+")
_WHEEL_URL = re.compile(r"https?://\S+\.whl")
_SHA256 = re.compile(r"sha256=([0-9a-f]{64})")


@dataclass(frozen=True)
class PythonPart:
    """What a spec says of Python.

    Attributes:
        python: Major and minor version, or ``none``.
        pip: The version of pip; empty without it.
        frameworks: Name → version, variant, index.
        packages: Entries of ``packages`` that nothing else in the image needs.
        needed: Entries that others need.
        notes: What could not be expressed.
    """

    python: str = "none"
    pip: str = ""
    frameworks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    packages: tuple[str | Mapping[str, str], ...] = ()
    needed: tuple[str | Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def python_part(scan: Scan) -> PythonPart:
    """Read the environment that the image is about; others are named in the notes."""
    counts: dict[str, int] = {}
    for item in scan.python.environments:
        if not item.path.startswith(_DEBIANS):
            counts[item.path] = 0
    for distribution in scan.python.installed:
        if distribution.environment in counts:
            counts[distribution.environment] += 1
    in_use = [path for path, count in counts.items() if count or path.startswith(_VENV)]
    chosen = max(in_use, key=lambda path: (path.startswith(_VENV), counts[path], path), default="")
    if not chosen:
        return PythonPart()
    notes = [
        f"packages: /{path} has {counts[path]} further distributions; a stack has one environment."
        for path in sorted(in_use)
        if path != chosen
    ]
    return _of_environment(scan, chosen, notes)


def _of_environment(scan: Scan, chosen: str, notes: list[str]) -> PythonPart:
    version = next(item.python for item in scan.python.environments if item.path == chosen)
    names = {package.name for package in scan.packages if package.kind == "deb"}
    if not version:
        notes.append(f"python: the path /{chosen} does not say which Python it is of.")
    elif f"python{version}" not in names:
        notes.append(
            f"python: {version} is not the distribution's own here (no deb python{version}); a stack's Python is."
        )
    if not chosen.startswith(_VENV):
        notes.append(f"packages: they are in /{chosen}; a stack has them in /opt/venv.")
    unowned = next(item.unowned for item in scan.python.environments if item.path == chosen)
    stripped = [name for name in unowned if name.partition(".")[0] not in _import_names(scan, chosen)]
    if stripped:
        notes.append(f"packages: modules without metadata in /{chosen}: {', '.join(stripped)}.")
    graph = PythonGraph(scan)
    numbers = [
        number
        for number, item in enumerate(scan.python.distributions)
        if item.environment == chosen and not item.vendored
    ]
    needed = {other for number in numbers for other in graph.needs(number)}
    frameworks: dict[str, Mapping[str, str]] = {}
    entries: dict[bool, list[str | Mapping[str, str]]] = {False: [], True: []}
    pip = ""
    for number in numbers:
        item = scan.python.distributions[number]
        notes += _changes(item)
        if item.key == "pip":
            pip = item.version
        elif (framework := _framework(item, scan)) is not None:
            frameworks[item.key] = framework
        else:
            entry, note = _entry(item, scan)
            notes += [note] if note else []
            if entry is not None:
                entries[number in needed].append(entry)
    return PythonPart(
        version or "none", pip, frameworks, tuple(entries[False]), tuple(entries[True]), tuple(notes)
    )


def _import_names(scan: Scan, chosen: str) -> set[str]:
    return {item.key.replace("-", "_") for item in scan.python.installed if item.environment == chosen}


def _framework(item: PythonDistribution, scan: Scan) -> Mapping[str, str] | None:
    """An entry of ``frameworks``; None for what is none, and for triton, which comes with torch."""
    version = _version(item)
    if item.key not in KNOWN_FRAMEWORKS or item.key == "triton" or version is None or item.url:
        return None
    if item.key not in _CHANNEL_FAMILY:
        return {"version": str(version)}
    if version.local:
        if not _VARIANT.fullmatch(version.local):
            return None
        return {"version": version.public, "variant": version.local}
    said = scan.python.torch.get(item.environment)
    if said is None:
        return {"version": version.public}
    cuda = said["cuda"].replace(".", "")
    variant = f"cu{cuda}" if cuda else "cpu"
    found = {"version": version.public, "variant": variant, "index": "default"}
    return found if _VARIANT.fullmatch(variant) else {"version": version.public, "index": "default"}


def _entry(item: PythonDistribution, scan: Scan) -> tuple[str | Mapping[str, str] | None, str]:
    """An entry of ``packages``, and a note where it says less than the image."""
    direct = scan.files.fact("json", f"{item.path}/direct_url.json") or {}
    version = _version(item)
    exact = f"{item.key}=={item.version}"
    if item.url:
        digest = _SHA256.fullmatch(str(direct.get("hash", "")))
        if _WHEEL_URL.fullmatch(item.url) and digest is not None:
            return {"url": item.url, "sha256": digest[1]}, ""
        return (
            None,
            f"packages: {exact} was installed from {item.url}, which is no wheel with a hash; publish one.",
        )
    if version is None:
        return None, f"packages: {item.name} has a version that no index can have: {item.version!r}."
    if version.local:
        return (
            exact,
            f"packages: {exact} has a local version; say under indexes, or by a URL, where it comes from.",
        )
    return exact, ""


def _changes(item: PythonDistribution) -> Iterator[str]:
    record = item.record
    if record.changed or record.missing:
        yield (
            f"packages: {item.name} {item.version} was changed after it was installed: of its RECORD's "
            f"files {len(record.changed)} differ, {len(record.missing)} are gone."
        )


def _version(item: PythonDistribution) -> Version | None:
    try:
        return Version(item.version)
    except InvalidVersion:
        return None
