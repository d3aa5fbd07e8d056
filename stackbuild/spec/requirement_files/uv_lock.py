"""uv.lock (version 1): the packages that the project at its root needs, with its groups and extras.

The format is described in uv's sources, crates/uv-resolver/src/lock/mod.rs (0.8 to 0.13). Only dependencies are
taken, not the project itself: its code comes in through ``files`` or as a wheel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
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
_LOCAL_SOURCES = ("virtual", "editable", "directory")


def read_uv_lock(path: Path, selection: Selection) -> FileContent:
    """Read what the root project needs.

    Raises:
        SpecError: The file is not a uv.lock of version 1, has no root project, lacks a group or extra, or holds a
            package that is no wheel from an index.
    """
    document = read_toml(path)
    packages = document.get("package")
    if document.get("version") != 1 or not isinstance(packages, list):
        raise refusal(path, "this is not a uv.lock of version 1", "Lock again with a current uv.")
    by_name: dict[str, list[Table]] = {}
    for package in packages:
        if not isinstance(package, dict) or not isinstance(package.get("name"), str):
            raise refusal(path, "a package has no name", "Lock again: the file is damaged.")
        by_name.setdefault(canonicalize_name(package["name"]), []).append(package)
    root = _root(path, packages)
    return FileContent(pins=tuple(_Walk(path, selection, by_name, root).pins()))


def _root(path: Path, packages: list[Table]) -> Table:
    local = [package for package in packages if set(_source(package)) & set(_LOCAL_SOURCES)]
    for package in local:
        if "." in (_source(package).get(kind) for kind in _LOCAL_SOURCES):
            return package
    if len(local) == 1:
        return local[0]
    raise refusal(
        path, "it has no project at its root", "Use `uv export --format pylock.toml` for a workspace."
    )


def _source(package: Table) -> Table:
    source = package.get("source")
    return source if isinstance(source, dict) else {}


class _Walk:
    """A walk over the dependencies that are reached in the stack's environments."""

    def __init__(
        self, path: Path, selection: Selection, by_name: Mapping[str, list[Table]], root: Table
    ) -> None:
        self._path = path
        self._selection = selection
        self._by_name = by_name
        self._root = root
        # uv writes conflicting extras and groups into markers as extra-LENGTH-PROJECT-NAME.
        project = str(root["name"])
        self._extras: set[str] = {canonicalize_name(extra) for extra in selection.extras}
        self._extras |= {f"extra-{len(project)}-{project}-{extra}" for extra in selection.extras}
        self._extras |= {f"group-{len(project)}-{project}-{group}" for group in selection.groups}

    def pins(self) -> Iterator[Pin]:
        """Return the pins in name order."""
        markers: dict[tuple[str, str], set[str]] = {}
        packages: dict[tuple[str, str], Table] = {}
        queue = deque((entry, "") for entry in self._root_dependencies())
        seen: set[tuple[str, str, str, str]] = set()
        while queue:
            entry, inherited = queue.popleft()
            condition = self._condition(entry, inherited)
            if condition is None:
                continue
            package = self._find(entry)
            key = (str(canonicalize_name(package["name"])), str(package.get("version", "")))
            packages[key] = package
            markers.setdefault(key, set()).add(condition)
            for extra in ("", *(entry.get("extra") or ())):
                state = (*key, str(extra), condition)
                if state not in seen:
                    seen.add(state)
                    section = package.get("optional-dependencies", {}).get(extra) if extra else None
                    following = section if extra else package.get("dependencies")
                    queue.extend((dependency, condition) for dependency in following or ())
        for key, conditions in sorted(markers.items()):
            marker = "" if "" in conditions else " or ".join(f"({text})" for text in sorted(conditions))
            yield self._pin(packages[key], marker)

    def _root_dependencies(self) -> list[Table]:
        root = self._root
        extras = root.get("optional-dependencies", {})
        groups = root.get("dev-dependencies", {})
        check_known(self._path, "extra", self._selection.extras, extras)
        check_known(self._path, "group", self._selection.groups, groups)
        entries = list(root.get("dependencies") or ())
        for wanted, sections in ((self._selection.extras, extras), (self._selection.groups, groups)):
            normal = {canonicalize_name(name) for name in wanted}
            for name, section in sections.items():
                if canonicalize_name(name) in normal:
                    entries.extend(section)
        return entries

    def _condition(self, entry: Table, inherited: str) -> str | None:
        """Return the marker under which an entry applies; empty for always, None for never."""
        marker = str(entry.get("marker", ""))
        try:
            answer = self._selection.environments.answer(marker, extras=self._extras)
        except InvalidMarker as error:
            raise refusal(self._path, f"'{entry.get('name')}' has a marker that is none: {error}") from None
        if answer == "never":
            return None
        # A requirement cannot repeat a condition on the project's own extras: those are decided.
        if answer == "always" or "extra" in marker:
            return inherited
        return f"({inherited}) and ({marker})" if inherited and inherited != marker else marker

    def _find(self, entry: Table) -> Table:
        name = canonicalize_name(str(entry.get("name", "")))
        found = [
            package
            for package in self._by_name.get(name, [])
            if entry.get("version") in (None, package.get("version"))
            and entry.get("source") in (None, package.get("source"))
        ]
        if len(found) != 1:
            raise refusal(
                self._path, f"'{name}' is needed, and the file has it {len(found)} times", "Lock again."
            )
        return found[0]

    def _pin(self, package: Table, marker: str) -> Pin:
        name = canonicalize_name(package["name"])
        if "registry" not in _source(package):
            kind = next(iter(_source(package)), "nowhere")
            raise refusal(
                self._path,
                f"'{name}' comes from {kind}, not from an index",
                "Build a wheel of it, and write {url: …, sha256: …} under packages in the spec.",
            )
        if not package.get("wheels"):
            raise refusal(
                self._path,
                f"'{name}' has no wheel, only a source archive",
                "Choose a version that has wheels.",
            )
        return Pin(
            name=name,
            version=exact_version(package.get("version"), self._path, name),
            hashes=wheel_hashes(package["wheels"], self._path, name),
            marker=marker,
            source=str(self._path),
        )
