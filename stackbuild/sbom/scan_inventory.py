"""What an image holds according to its scan, as items: of any image, whoever built it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from packaging.utils import canonicalize_name

from stackbuild.sbom.bundled import stated_components
from stackbuild.sbom.inventory import (
    Evidence,
    Inventory,
    Item,
    SystemKind,
    is_purl_name,
    merge,
    placed_once,
    pypi_purl,
    stated,
    system_purl,
)
from stackbuild.sbom.licences import metadata_licences
from stackbuild.sbom.native import NativeLibraries, gpu_properties
from stackbuild.sbom.python_graph import PythonGraph
from stackbuild.sbom.system_graph import SystemGraph
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.contents.python import PythonDistribution
from stackbuild.scan.scan import Scan
from stackbuild.spec.known_frameworks import KNOWN_FRAMEWORKS


def scan_inventory(scan: Scan) -> Inventory:
    """Everything a scan found, each key once.

    A library that a distribution or package brings, and a vendored copy inside a distribution, is a child
    of it; on top are the operating system and what nothing else needs.
    """
    return _ScanInventory(scan).inventory()


class _ScanInventory:
    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._system = SystemGraph(scan)
        self._graph = PythonGraph(scan)
        self._native = NativeLibraries(scan, self._system)
        self._packages = [self._package(package) for package in scan.packages]
        self._distributions = [self._distribution(item) for item in scan.python.distributions]
        self._keys = self._keys_by_path()

    def inventory(self) -> Inventory:
        packages = [self._whole_package(number) for number, _ in enumerate(self._packages)]
        inside = self._vendored_by_owner()
        nested = {number for numbers in inside.values() for number in numbers}
        distributions = [
            self._whole_distribution(number, inside)
            for number, _ in enumerate(self._distributions)
            if number not in nested
        ]
        loose = [*self._native.of_nobody(self._keys), *self._torch_without_metadata()]
        system = self._os(tuple(item.key for item in packages))
        items = placed_once(merge([*([system] if system else []), *packages, *distributions, *loose]))
        start = [system.key] if system else [item.key for item in packages]
        return Inventory(items, tuple(sorted(_top(items, start))))

    def _os(self, contents: tuple[str, ...]) -> Item | None:
        release, files = self._scan.os, self._scan.files
        if not release.id:
            return None
        paths = [path for path, _, _ in files.facts("os-release")]
        properties = {
            "codename": release.codename,
            "name": release.pretty_name,
            "glibc": self._scan.glibc,
        }
        return Item(
            "operating-system",
            release.id,
            release.version_id,
            properties=stated(properties),
            needs=tuple(sorted(set(contents))),
            evidence=tuple(self._evidence(path) for path in paths),
        )

    def _package(self, package: SystemPackage) -> Item:
        kind: SystemKind = package.kind  # type: ignore[assignment] # the scan has no other kinds
        release = self._scan.os
        named = (kind, package.name, package.version, package.architecture)
        purl = (
            system_purl(*named, os_id=release.id, os_version=release.version_id)
            if is_purl_name(package.name)
            else None
        )
        return Item(
            "library",
            package.name,
            package.version,
            purl,
            # conda has one package in many environments, the system's database has each once.
            location=f"/{package.database}" if kind == "conda" else "",
            licences=package.licences,
            properties=stated(
                {"channel" if kind == "conda" else "source-package": package.source, "module": package.module}
            ),
            evidence=(self._evidence_of(package),),
        )

    def _whole_package(self, number: int) -> Item:
        needs = (self._packages[other].key for other in self._system.needs(number))
        children = self._native.of_package(number, self._keys)
        return replace(self._packages[number], needs=tuple(needs), children=children)

    def _distribution(self, found: PythonDistribution) -> Item:
        metadata = found.metadata
        direct = self._scan.files.fact("json", f"{found.path}/direct_url.json") or {}
        algorithm, _, digest = str(direct.get("hash", "")).partition("=")
        record = found.record
        properties = {
            "environment": f"/{found.environment}",
            "vendored": "true" if found.vendored else "",
            "url": found.url,
            "editable": "true" if direct.get("editable") else "",
            "files-missing": str(len(record.missing) or ""),
            "files-changed": str(len(record.changed) or ""),
        }
        return Item(
            "framework" if found.key in KNOWN_FRAMEWORKS else "library",
            found.name,
            found.version,
            pypi_purl(found.key, found.version) if is_purl_name(found.key) else None,
            location=f"/{found.environment}",
            sha256=digest if algorithm == "sha256" and _is_sha256(digest) else "",
            licences=metadata_licences(metadata),
            properties=stated(properties),
            evidence=(self._evidence(_metadata_file(found, self._scan)),),
        )

    def _whole_distribution(self, number: int, inside: Mapping[int, list[int]]) -> Item:
        item = self._distributions[number]
        needs = {self._distributions[other].key for other in self._graph.needs(number)}
        modules = self._native.extension_modules(number)
        needs.update(self._native.needed_by(modules, self._keys))
        libraries = self._native.of_distribution(number, self._keys)
        vendored = [self._whole_distribution(other, inside) for other in inside.get(number, ())]
        found = self._scan.python.distributions[number]
        stated = stated_components(self._scan.files, found.path, self._evidence)
        return replace(
            item,
            needs=tuple(sorted(needs - {item.key})),
            children=merge([*libraries, *vendored, *stated]),
            properties={**item.properties, **gpu_properties(self._native.files_of_distribution(number))},
        )

    def _vendored_by_owner(self) -> dict[int, list[int]]:
        """Distributions inside another one's package, by the number of that one."""
        python = self._scan.python
        inside: dict[int, list[int]] = {}
        for number, found in enumerate(python.distributions):
            owner = python.owners.get(_metadata_file(found, self._scan)) if found.vendored else None
            # A copy's own RECORD may name its metadata too; then the package around it is not known.
            if owner is not None and owner != number and not python.distributions[owner].vendored:
                inside.setdefault(owner, []).append(number)
        return inside

    def _torch_without_metadata(self) -> Iterator[Item]:
        """An installed torch whose metadata was stripped: its own file still says what it is."""
        known = {(item.environment, item.key) for item in self._scan.python.distributions}
        for environment, said in sorted(self._scan.python.torch.items()):
            if (environment, "torch") not in known and said["version"]:
                yield Item(
                    "framework",
                    "torch",
                    said["version"],
                    pypi_purl("torch", said["version"]),
                    location=f"/{environment}",
                    properties={"environment": f"/{environment}", "metadata": "missing"},
                    evidence=(self._evidence(f"{environment}/torch/version.py"),),
                )

    def _keys_by_path(self) -> dict[str, str]:
        """Whose key stands for a library that something loads."""
        keys = self._native.keys()
        for path in self._scan.libraries:
            if path in keys:
                continue
            package = self._system.owner(path)
            owner = self._scan.python.owners.get(path)
            if owner is not None:
                keys[path] = self._distributions[owner].key
            elif package is not None:
                keys[path] = self._packages[package].key
        return keys

    def _evidence_of(self, package: SystemPackage) -> Evidence:
        if package.kind == "rpm":
            return Evidence(f"/{package.database}", self._scan.files.description.diff_ids[package.layer])
        return self._evidence(_record_of(package, self._scan))

    def _evidence(self, path: str) -> Evidence:
        placed = self._scan.files.get(path)
        layer = self._scan.files.description.diff_ids[placed.layer] if placed is not None else ""
        return Evidence(f"/{path}", layer)


def missing_metadata(scan: Scan) -> dict[str, tuple[str, ...]]:
    """Importable modules that no distribution's metadata names and no rpm brings; none for Debian's own folders."""
    named = {canonicalize_name(item.name) for item in scan.python.distributions}
    found = {
        environment.path: tuple(
            name
            for name in environment.unowned
            if canonicalize_name(name.partition(".")[0]) not in named
            and not _is_of_rpm(f"{environment.path}/{name}", scan)
        )
        for environment in scan.python.environments
        if not environment.path.startswith("usr/lib/python3/")
    }
    return {path: names for path, names in found.items() if names}


def _is_of_rpm(module: str, scan: Scan) -> bool:
    return any(scan.rpm_files.packages_of(path) for path in (module, f"{module}/__init__.py"))


def _record_of(package: SystemPackage, scan: Scan) -> str:
    """The file that stands for a package: dpkg's own list of its files, whose layer is that of the package."""
    stems = (package.name, f"{package.name}:{package.architecture}") if package.kind == "deb" else ()
    lists = (f"var/lib/dpkg/info/{stem}.list" for stem in stems)
    return next((path for path in lists if path in scan.files), package.database)


def _metadata_file(found: PythonDistribution, scan: Scan) -> str:
    names = (f"{found.path}/METADATA", f"{found.path}/PKG-INFO", found.path)
    return next((name for name in names if name in scan.files), found.path)


def _top(items: tuple[Item, ...], start: list[str]) -> set[str]:
    """``start``, what nothing needs, and of circles that nothing leads to the first in key order."""
    needs: dict[str, set[str]] = {item.key: set() for item in items}
    home = {part.key: item.key for item in items for part in item.with_children()}
    for item in items:
        for part in item.with_children():
            needs[item.key] |= {home[need] for need in part.needs} - {item.key}
    needed = {need for found in needs.values() for need in found}
    top = {*start, *(key for key in needs if key not in needed)}
    reached: set[str] = set()
    for key in (*sorted(top), *sorted(needs)):
        if key not in reached:
            top.add(key)
            ahead = [key]
            while ahead:
                current = ahead.pop()
                if current not in reached:
                    reached.add(current)
                    ahead.extend(needs[current])
    return top


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and all(letter in "0123456789abcdef" for letter in text)
