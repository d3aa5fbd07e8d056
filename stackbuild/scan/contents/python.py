"""Python distributions in every environment of an image, held against their RECORDs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stackbuild.distribution_name import normalized_name
from stackbuild.scan.image_files import ImageFiles

_SITE = re.compile(r"(?:^|/)(?:site|dist)-packages$")
_SITE_PREFIX = re.compile(r"((?:.*?/)?(?:site|dist)-packages)/")
_FOLDER = re.compile(r"(.+)\.(?:dist-info|egg-info)")
_MODULE = re.compile(r"python(\d+\.\d+)/")


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """A RECORD held against the image's files.

    Attributes:
        listed: Number of files it names; 0 without a RECORD.
        missing: Files it names that are not there; byte-code, which anyone may make anew, is not counted.
        changed: Files whose content has another hash than it gives.
        unchecked: Number of files whose hash was not taken or not given.
    """

    listed: int = 0
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchecked: int = 0


@dataclass(frozen=True, slots=True)
class PythonDistribution:
    """One installed distribution.

    Attributes:
        name: As its metadata spells it.
        version: Its version.
        environment: The folder it is importable from, for example ``opt/venv/lib/python3.12/site-packages``.
        path: Its metadata folder or file.
        layer: The layer that brings it.
        vendored: True for a copy inside another package, which pip and importlib.metadata do not see.
        metadata: The fields that were kept, by lower-case name.
        record: Its files held against its RECORD.
        url: Where it was installed from, where it says so.
    """

    name: str
    version: str
    environment: str
    path: str
    layer: int
    vendored: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)
    record: RecordCheck = RecordCheck()
    url: str = ""

    @property
    def key(self) -> str:
        """Its normalised name."""
        return normalized_name(self.name)


@dataclass(frozen=True, slots=True)
class Environment:
    """A folder of importable packages.

    Attributes:
        path: The folder.
        python: Major and minor version; empty when its path does not say.
        unowned: Modules and packages in it that no RECORD names, in name order.
    """

    path: str
    python: str
    unowned: tuple[str, ...] = ()


@dataclass(frozen=True)
class PythonContents:
    """All Python in an image.

    Attributes:
        distributions: Every distribution, vendored ones too, by environment and name.
        environments: Every site-packages and dist-packages folder.
        owners: Path → number of its distribution in ``distributions``.
        torch: What each installed torch says of itself, by environment.
    """

    distributions: tuple[PythonDistribution, ...]
    environments: tuple[Environment, ...]
    owners: Mapping[str, int]
    torch: Mapping[str, Mapping[str, str]]

    def owner(self, path: str) -> PythonDistribution | None:
        """The distribution whose RECORD names this path."""
        number = self.owners.get(path)
        return self.distributions[number] if number is not None else None

    @property
    def installed(self) -> tuple[PythonDistribution, ...]:
        """Those that pip would list."""
        return tuple(item for item in self.distributions if not item.vendored)


def python_contents(files: ImageFiles) -> PythonContents:
    """Read an image's Python."""
    found: list[PythonDistribution] = []
    named: list[list[str]] = []
    for path, layer, fields in files.facts("metadata"):
        if not fields.get("name"):
            continue
        root = path if path.endswith(".egg-info") else path.rpartition("/")[0]
        environment = root.rpartition("/")[0]
        record = files.fact("record", f"{root}/RECORD")
        paths = record["paths"].split("\n") if record and record["paths"] else []
        direct = files.fact("json", f"{root}/direct_url.json") or {}
        found.append(
            PythonDistribution(
                name=fields["name"],
                version=fields.get("version", ""),
                environment=environment,
                path=root,
                layer=layer,
                vendored=not _SITE.search(environment)
                and bool(re.search(r"(?:site|dist)-packages/", environment)),
                metadata=fields,
                record=_checked(files, record, paths, layer) if record else RecordCheck(),
                url=direct.get("url", ""),
            )
        )
        named.append(paths)
    order = sorted(range(len(found)), key=lambda number: (found[number].environment, found[number].key))
    owners = {path: place for place, number in enumerate(order) for path in named[number]}
    return PythonContents(
        distributions=tuple(found[number] for number in order),
        environments=_environments(files, owners),
        owners=owners,
        torch={
            path.rsplit("/", 2)[0]: {"version": value["version"], "cuda": value["cuda"]}
            for path, _, value in files.facts("torch-version")
        },
    )


def _checked(files: ImageFiles, record: Mapping[str, Any], paths: Iterable[str], layer: int) -> RecordCheck:
    missing: list[str] = []
    changed: list[str] = []
    unchecked = 0
    listed = [*paths]
    still_open: dict[str, str] = dict(record["open"])
    for path in listed:
        target, placed = path, files.get(path)
        if placed is None:
            found = files.resolve(path)
            if found is None:
                if not path.endswith(".pyc"):
                    missing.append(path)
                continue
            target, placed = found, files.get(found)
        if path in still_open:
            wanted = still_open[path]
            measured = files.fact("sha256", target)
            if wanted and measured is not None and measured != wanted:
                changed.append(path)
            elif not (wanted and measured) and not path.endswith(".pyc"):
                unchecked += 1
        elif (
            placed is not None and placed.layer > layer and placed.entry.kind == "file" and not _is_made(path)
        ):
            changed.append(path)  # confirmed in its own layer, replaced by a later one
    return RecordCheck(len(listed), tuple(missing), tuple(changed), unchecked)


def _is_made(path: str) -> bool:
    """What installers write themselves, without a hash that could be held against it."""
    return path.endswith((".pyc", "/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json"))


def _environments(files: ImageFiles, owners: Mapping[str, int]) -> tuple[Environment, ...]:
    folders = sorted(
        path
        for path, placed in files.placed()
        if path.endswith("-packages") and placed.entry.kind == "dir" and _SITE.search(path)
    )
    tops: dict[str, set[str]] = {}
    inside, begin, names = "\0", 0, set[str]()  # no path begins so
    for path in owners:
        # Neighbours are mostly of one folder, and the expression is slow.
        if not path.startswith(inside):
            match = _SITE_PREFIX.match(path)
            if match is None:
                continue
            inside, begin = match[0], match.end()
            names = tops.setdefault(match[1], set())
        end = path.find("/", begin)
        names.add(path[begin:] if end < 0 else path[begin:end])
    made = []
    for folder in folders:
        match = _MODULE.search(f"{folder}/")
        unowned = [
            name
            for name in sorted(files.names_in(folder))
            if name not in tops.get(folder, ()) and _is_importable(files, folder, name)
        ]
        made.append(Environment(folder, match[1] if match else "", tuple(unowned)))
    return tuple(made)


def _is_importable(files: ImageFiles, folder: str, name: str) -> bool:
    if _FOLDER.fullmatch(name) or name.startswith(("_", ".")) or not name.partition(".")[0].isidentifier():
        return False
    if name.endswith((".py", ".so")):
        return True
    return f"{folder}/{name}/__init__.py" in files
