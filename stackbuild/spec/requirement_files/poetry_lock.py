"""poetry.lock: version 2.1 (Poetry 2), which says which group needs a package, and 1.1 with its categories.

Versions 2.0 and 1.2 (Poetry 1.5 to 1.8) leave that to pyproject.toml, so they are refused with the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker
from packaging.utils import canonicalize_name

from stackbuild.spec.requirement_files.interface import (
    FileContent,
    Pin,
    Selection,
    exact_version,
    read_toml,
    refusal,
    wheel_hashes,
)
from stackbuild.spec.requirement_files.selection import check_known

Table = Mapping[str, Any]
_MAIN = "main"


def read_poetry_lock(path: Path, selection: Selection) -> FileContent:
    """Read the packages of the main group, and of the groups and extras that the spec names.

    Raises:
        SpecError: The file is not a poetry.lock of a version that says what belongs to which group, lacks a group
            or extra, or holds a package that is no wheel from an index.
    """
    document = read_toml(path)
    packages = document.get("package", [])
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "lock-version" not in metadata or not isinstance(packages, list):
        raise refusal(path, "this is not a poetry.lock: it has no lock-version")
    if packages and not all(isinstance(package, dict) and _groups(package) for package in packages):
        raise refusal(
            path,
            f"a poetry.lock of version {metadata['lock-version']} does not say which group needs a package",
            "Lock with Poetry 2, or write a requirements.txt with `poetry export`.",
        )
    check_known(path, "extra", selection.extras, document.get("extras", {}))
    check_known(
        path,
        "group",
        selection.groups,
        {group for package in packages for group in _groups(package)} | {_MAIN},
    )
    wanted = {_MAIN, *selection.groups}
    legacy = metadata.get("files", {})  # lock-version 1.1 keeps the hashes apart
    pins = []
    for package in packages:
        marker = _marker(path, package, wanted, document.get("extras", {}), selection)
        if marker is not None:
            pins.append(_pin(path, package, marker, legacy))
    return FileContent(pins=tuple(sorted(pins, key=lambda pin: (pin.name, pin.version))))


def _groups(package: Table) -> list[str]:
    if "groups" in package:
        return [str(group) for group in package["groups"]]
    return [str(package["category"])] if "category" in package else []


def _marker(
    path: Path, package: Table, wanted: set[str], all_extras: Table, selection: Selection
) -> str | None:
    """Return the marker under which a package applies; empty for always, None for never."""
    groups = [group for group in _groups(package) if group in wanted]
    if not groups:
        return None
    given = package.get("markers", "")
    markers = [str(given.get(group, "")) for group in groups] if isinstance(given, dict) else [str(given)]
    if package.get("optional") and not any("extra" in marker for marker in markers):
        names = {canonicalize_name(package["name"])}
        members = {
            canonicalize_name(str(member).split()[0].split("[")[0])
            for extra in selection.extras
            for member in all_extras.get(extra, ())
        }
        if not names & members:
            return None
    kept = []
    for marker in markers:
        try:
            answer = selection.environments.answer(marker, extras=selection.extras)
        except InvalidMarker as error:
            raise refusal(path, f"'{package.get('name')}' has a marker that is none: {error}") from None
        if answer == "always" or (answer == "depends" and "extra" in marker):
            return ""
        if answer == "depends":
            kept.append(f"({marker})" if len(markers) > 1 else marker)
    return " or ".join(kept) if kept else None


def _pin(path: Path, package: Table, marker: str, legacy: Table) -> Pin:
    name = canonicalize_name(str(package.get("name", "")))
    source = package.get("source", {})
    if source.get("type") in ("git", "directory", "file", "url"):
        raise refusal(
            path,
            f"'{name}' comes from a {source['type']}, not from an index",
            "Build a wheel of it, and write {url: …, sha256: …} under packages in the spec.",
        )
    files = package.get("files") or legacy.get(str(package.get("name")), [])
    hashes = wheel_hashes(files, path, name)
    if files and not hashes:
        raise refusal(
            path, f"'{name}' has no wheel, only a source archive", "Choose a version that has wheels."
        )
    version = exact_version(package.get("version"), path, name)
    return Pin(name, version, hashes=hashes, marker=marker, source=str(path))
