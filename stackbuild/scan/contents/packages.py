"""The distribution and its packages: debs, rpms, apks; conda's packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stackbuild.scan.image_files import ImageFiles

_DATABASES = {"dpkg": "deb", "apk": "apk", "rpm": "rpm"}


@dataclass(frozen=True, slots=True)
class OsRelease:
    """The distribution, as os-release(5) names it."""

    id: str = ""
    version_id: str = ""
    codename: str = ""
    pretty_name: str = ""

    @property
    def key(self) -> str:
        """As the facts name distributions, for example ``ubuntu24.04``; empty when unknown."""
        return f"{self.id}{self.version_id}" if self.id else ""


@dataclass(frozen=True, slots=True)
class SystemPackage:
    """One package of the distribution or of conda.

    Attributes:
        kind: ``deb``, ``rpm``, ``apk`` or ``conda``.
        name: Its name.
        version: Its version; of rpm with epoch and release.
        architecture: As its own system names it; of conda the platform.
        source: The source package, or conda's channel.
        size: Bytes installed as the database says; 0 when it does not.
        database: Where it is recorded.
        layer: The layer that database comes from; of rpm, whose database has all packages in one file, the first
            layer from which on the package is in it.
        licences: As the package declares them; of rpm and apk one expression.
        depends: What it needs, in its own system's words; empty where that is not read.
        provides: Further names it answers to.
        module: Of rpm, the module it was built for; empty for none.
        files: Of rpm, folder without slashes around it → names in it; None where the database does not say, or
            cannot be read: then dependencies are not known either.
        ghosts: Of rpm, the same of files that are its own and not brought by it: logs, caches, alternatives.
    """

    kind: str
    name: str
    version: str
    architecture: str
    source: str
    size: int
    database: str
    layer: int
    licences: tuple[str, ...] = ()
    depends: str = ""
    provides: str = ""
    module: str = ""
    files: Mapping[str, Sequence[str]] | None = field(default=None, compare=False, repr=False)
    ghosts: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)


def os_release(files: ImageFiles) -> OsRelease:
    """The distribution; empty fields for an image that does not say."""
    target = files.resolve("etc/os-release") or files.resolve("usr/lib/os-release")
    found: Mapping[str, str] = (files.fact("os-release", target) if target else None) or {}
    if not found:
        found = next((value for _, _, value in files.facts("os-release")), {})
    return OsRelease(
        found.get("ID", ""),
        found.get("VERSION_ID", ""),
        found.get("VERSION_CODENAME", ""),
        found.get("PRETTY_NAME", ""),
    )


def system_packages(files: ImageFiles) -> tuple[SystemPackage, ...]:
    """Every package that a package manager's database names, by kind and name."""
    return tuple(
        sorted(_packages(files), key=lambda item: (item.kind, item.name, item.version, item.database))
    )


def _packages(files: ImageFiles) -> Iterator[SystemPackage]:
    for reader, kind in _DATABASES.items():
        for path, layer, rows in files.facts(reader):
            since = _first_layers(files, path, layer) if kind == "rpm" else {}
            for name, version, architecture, source, size, licence, depends, provides, *further in rows:
                # dpkg and apk count in KiB and bytes.
                bytes_installed = size * 1024 if kind == "deb" else size
                licences = _of_copyright(files, name) if kind == "deb" else (licence,) if licence else ()
                yield SystemPackage(
                    kind,
                    name,
                    version,
                    architecture,
                    source,
                    bytes_installed,
                    path,
                    since.get((name, version, architecture), layer),
                    licences,
                    depends,
                    provides,
                    *further,
                )
    for path, layer, value in files.facts("json"):
        if "/conda-meta/" in f"/{path}":
            yield SystemPackage(
                "conda",
                value["name"],
                value["version"],
                value["subdir"],
                value["channel"],
                0,
                path,
                layer,
                (value["license"],) if value["license"] else (),
            )


def _first_layers(files: ImageFiles, path: str, last: int) -> Mapping[tuple[str, str, str], int]:
    """The first layer from which on each package is in a database up to its last state, by name and so on."""
    first: dict[tuple[str, str, str], int] = {}
    for number, layer in enumerate(files.layers[: last + 1]):
        rows: Sequence[Sequence[Any]] | None = layer.facts.get("rpm", {}).get(path)
        if rows is not None:
            there = {(row[0], row[1], row[2]) for row in rows}
            first = {key: first.get(key, number) for key in there}
    return first


def _of_copyright(files: ImageFiles, name: str) -> tuple[str, ...]:
    """The licences in a deb's copyright file; its folder may be a link to that of another package."""
    target = files.resolve(f"usr/share/doc/{name}/copyright")
    return tuple(files.fact("copyright", target) or ()) if target else ()
