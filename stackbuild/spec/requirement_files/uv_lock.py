"""uv.lock (version 1): the packages that the project at its root needs, with its groups and extras.

The format is described in uv's sources, crates/uv-resolver/src/lock/mod.rs (0.8 to 0.13). Only dependencies are
taken, not the project itself: its code comes in through ``files`` or as a wheel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

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

# The markers that must all hold on one way from the project to a package.
_Condition = frozenset[str]
_ALWAYS: _Condition = frozenset()
_LOCAL_SOURCES = ("virtual", "editable", "directory")


class _Dependency(LockPart):
    name: str
    version: str | None = None
    source: dict[str, Any] | None = None
    marker: str = ""
    extra: list[str] = Field(default_factory=list)


class _Package(LockPart):
    name: str
    version: str = ""
    source: dict[str, Any] = Field(default_factory=dict)
    dependencies: list[_Dependency] = Field(default_factory=list)
    optional_dependencies: dict[str, list[_Dependency]] = Field(default_factory=dict)
    dev_dependencies: dict[str, list[_Dependency]] = Field(default_factory=dict)
    wheels: list[LockedFile] = Field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        return canonicalize_name(self.name), self.version


class _UvLock(LockPart):
    version: Literal[1]
    package: list[_Package]


def read_uv_lock(path: Path, selection: Selection) -> FileContent:
    """Read what the root project needs.

    Raises:
        SpecError: The file is not a uv.lock of version 1, has no root project, lacks a group or extra, or holds a
            package that is no wheel from an index.
    """
    packages = read_lock(path, _UvLock, "uv.lock of version 1").package
    by_name: dict[str, list[_Package]] = {}
    for package in packages:
        by_name.setdefault(canonicalize_name(package.name), []).append(package)
    root = _root(path, packages)
    return FileContent(pins=tuple(_Walk(path, selection, by_name, root).pins()))


def _root(path: Path, packages: list[_Package]) -> _Package:
    local = [package for package in packages if set(package.source) & set(_LOCAL_SOURCES)]
    for package in local:
        if "." in (package.source.get(kind) for kind in _LOCAL_SOURCES):
            return package
    if len(local) == 1:
        return local[0]
    raise refusal(
        path, "it has no project at its root", "Use `uv export --format pylock.toml` for a workspace."
    )


def _marker(conditions: set[_Condition]) -> str:
    """Write the conditions of all ways to a package as one marker; empty when one of them is always open."""
    if _ALWAYS in conditions:
        return ""
    ways = sorted(" and ".join(f"({marker})" for marker in sorted(way)) for way in conditions)
    return ways[0] if len(ways) == 1 else " or ".join(f"({way})" for way in ways)


class _Walk:
    """A walk over the dependencies that are reached in the stack's environments."""

    def __init__(
        self, path: Path, selection: Selection, by_name: Mapping[str, list[_Package]], root: _Package
    ) -> None:
        self._path = path
        self._selection = selection
        self._by_name = by_name
        self._root = root
        # uv writes conflicting extras and groups into markers as extra-LENGTH-PROJECT-NAME.
        project = root.name
        self._extras: set[str] = {canonicalize_name(extra) for extra in selection.extras}
        self._extras |= {f"extra-{len(project)}-{project}-{extra}" for extra in selection.extras}
        self._extras |= {f"group-{len(project)}-{project}-{group}" for group in selection.groups}

    def pins(self) -> Iterator[Pin]:
        """Return the pins in name order."""
        conditions: dict[tuple[str, str], set[_Condition]] = {}
        packages: dict[tuple[str, str], _Package] = {}
        queue = deque((entry, _ALWAYS) for entry in self._root_dependencies())
        seen: set[tuple[tuple[str, str], str, _Condition]] = set()
        while queue:
            entry, inherited = queue.popleft()
            condition = self._condition(entry, inherited)
            if condition is None:
                continue
            package = self._find(entry)
            packages[package.key] = package
            conditions.setdefault(package.key, set()).add(condition)
            for extra in ("", *entry.extra):
                if (package.key, extra, condition) in seen:
                    continue
                seen.add((package.key, extra, condition))
                following = package.optional_dependencies.get(extra, []) if extra else package.dependencies
                queue.extend((dependency, condition) for dependency in following)
        for key in sorted(packages):
            yield self._pin(packages[key], _marker(conditions[key]))

    def _root_dependencies(self) -> list[_Dependency]:
        root = self._root
        extras, groups = root.optional_dependencies, root.dev_dependencies
        check_known(self._path, "extra", self._selection.extras, extras)
        check_known(self._path, "group", self._selection.groups, groups)
        entries = list(root.dependencies)
        for wanted, sections in ((self._selection.extras, extras), (self._selection.groups, groups)):
            normal = {canonicalize_name(name) for name in wanted}
            for name, section in sections.items():
                if canonicalize_name(name) in normal:
                    entries.extend(section)
        return entries

    def _condition(self, entry: _Dependency, inherited: _Condition) -> _Condition | None:
        """Return under which markers an entry applies; None for never."""
        try:
            answer = self._selection.environments.answer(entry.marker, extras=self._extras)
        except InvalidMarker as error:
            raise refusal(self._path, f"'{entry.name}' has a marker that is none: {error}") from None
        if answer == "never":
            return None
        # A requirement cannot repeat a condition on the project's own extras: those are decided.
        if answer == "always" or "extra" in entry.marker:
            return inherited
        return inherited | {entry.marker}

    def _find(self, entry: _Dependency) -> _Package:
        found = [
            package
            for package in self._by_name.get(canonicalize_name(entry.name), [])
            if entry.version in (None, package.version) and entry.source in (None, package.source)
        ]
        if len(found) != 1:
            raise refusal(
                self._path, f"'{entry.name}' is needed, and the file has it {len(found)} times", "Lock again."
            )
        return found[0]

    def _pin(self, package: _Package, marker: str) -> Pin:
        name = canonicalize_name(package.name)
        if "registry" not in package.source:
            kind = next(iter(package.source), "nowhere")
            raise refusal(
                self._path,
                f"'{name}' comes from {kind}, not from an index",
                "Build a wheel of it, and write {url: …, sha256: …} under packages in the spec.",
            )
        if not package.wheels:
            raise refusal(
                self._path,
                f"'{name}' has no wheel, only a source archive",
                "Choose a version that has wheels.",
            )
        return Pin(
            name=name,
            version=exact_version(package.version, self._path, name),
            hashes=wheel_hashes(package.wheels, self._path, name),
            marker=marker,
            source=str(self._path),
        )
