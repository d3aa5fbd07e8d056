"""poetry.lock: version 2.1 (Poetry 2), which says which group needs a package, and 1.1 with its categories.

Versions 2.0 and 1.2 (Poetry 1.5 to 1.8) leave that to pyproject.toml, so they are refused with the way out.
"""

from __future__ import annotations

import re
from pathlib import Path

from packaging.markers import InvalidMarker
from packaging.utils import canonicalize_name
from pydantic import Field

from stackbuild.spec.requirement_files.interface import (
    FileContent,
    LockedFile,
    LockPart,
    Pin,
    Selection,
    exact_version,
    read_lock,
    refusal,
    wheel_hashes,
)
from stackbuild.spec.requirement_files.selection import check_known

_MAIN = "main"


class _Source(LockPart):
    type: str = ""


class _Package(LockPart):
    name: str
    version: str
    optional: bool = False
    groups: list[str] = Field(default_factory=list)
    category: str = ""
    markers: str | dict[str, str] = ""
    files: list[LockedFile] = Field(default_factory=list)
    source: _Source = _Source()

    @property
    def needed_by(self) -> list[str]:
        """The groups that need it; version 1.1 has one and calls it a category."""
        return self.groups or ([self.category] if self.category else [])


class _Metadata(LockPart):
    lock_version: str
    files: dict[str, list[LockedFile]] = Field(default_factory=dict)


class _PoetryLock(LockPart):
    package: list[_Package] = Field(default_factory=list)
    extras: dict[str, list[str]] = Field(default_factory=dict)
    metadata: _Metadata


def read_poetry_lock(path: Path, selection: Selection) -> FileContent:
    """Read the packages of the main group, and of the groups and extras that the spec names.

    Raises:
        SpecError: The file is not a poetry.lock of a version that says what belongs to which group, lacks a group
            or extra, or holds a package that is no wheel from an index.
    """
    lock = read_lock(path, _PoetryLock, "poetry.lock")
    if not all(package.needed_by for package in lock.package):
        raise refusal(
            path,
            f"a poetry.lock of version {lock.metadata.lock_version} does not say which group needs a package",
            "Lock with Poetry 2, or write a requirements.txt with `poetry export`.",
        )
    groups = {group for package in lock.package for group in package.needed_by} | {_MAIN}
    check_known(path, "extra", selection.extras, lock.extras)
    check_known(path, "group", selection.groups, groups)
    pins = []
    for package in lock.package:
        marker = _marker(path, package, lock, selection)
        if marker is not None:
            pins.append(_pin(path, package, marker, lock))
    return FileContent(pins=tuple(sorted(pins, key=lambda pin: (pin.name, pin.version))))


def _marker(path: Path, package: _Package, lock: _PoetryLock, selection: Selection) -> str | None:
    """Return the marker under which a package applies; empty for always, None for never."""
    groups = [group for group in package.needed_by if group in {_MAIN, *selection.groups}]
    given = package.markers
    markers = [given.get(group, "") if isinstance(given, dict) else given for group in groups]
    if package.optional and not any("extra" in marker for marker in markers):
        members = {
            _distribution(member) for extra in selection.extras for member in lock.extras.get(extra, [])
        }
        if canonicalize_name(package.name) not in members:
            return None
    kept = []
    for marker in markers:
        try:
            answer = selection.environments.answer(marker, extras=selection.extras)
        except InvalidMarker as error:
            raise refusal(path, f"'{package.name}' has a marker that is none: {error}") from None
        # A requirement cannot repeat a condition on the project's own extras: those are decided.
        if answer == "always" or (answer == "depends" and "extra" in marker):
            return ""
        if answer == "depends":
            kept.append(f"({marker})" if len(markers) > 1 else marker)
    return " or ".join(kept) if kept else None


def _distribution(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return canonicalize_name(match[0]) if match else ""


def _pin(path: Path, package: _Package, marker: str, lock: _PoetryLock) -> Pin:
    name = canonicalize_name(package.name)
    if package.source.type in ("git", "directory", "file", "url"):
        raise refusal(
            path,
            f"'{name}' comes from a {package.source.type}, not from an index",
            "Build a wheel of it, and write {url: …, sha256: …} under packages in the spec.",
        )
    # Version 1.1 keeps the hashes apart from the packages.
    files = package.files or lock.metadata.files.get(package.name, [])
    if files and not any(file.is_wheel for file in files):
        raise refusal(
            path, f"'{name}' has no wheel, only a source archive", "Choose a version that has wheels."
        )
    return Pin(
        name=name,
        version=exact_version(package.version, path, name),
        hashes=wheel_hashes(files, path, name),
        marker=marker,
        source=str(path),
    )
