"""Which package of the distribution needs which, and whose a library is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stackbuild.sbom.rpm_graph import RpmGraph
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.readers.debian import package_of_list
from stackbuild.scan.scan import Scan

_DEB_NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.\-]*)")
_APK_NAME = re.compile(r"[^<>=~]+")


class SystemGraph:
    """The dependencies between an image's packages, and the owners of its libraries.

    Debian policy 4.6, chapter 7: of alternatives the first that is installed counts. apk-tools, "apk-package(5)":
    libraries and commands are provided by name. For rpms see :class:`RpmGraph`; of conda's packages dependencies are
    not read.

    Args:
        scan: The image.
    """

    def __init__(self, scan: Scan) -> None:
        self._packages = packages = scan.packages
        self._rpm_files = scan.rpm_files
        self._rpms = RpmGraph(packages, scan.rpm_files)
        self._by_name: dict[tuple[str, str], int] = {}
        for number, package in enumerate(packages):
            self._by_name.setdefault((package.kind, package.name), number)
        for number, package in enumerate(packages):
            for name in _names(package.kind, package.provides):
                self._by_name.setdefault((package.kind, name), number)
        self._owners = self._read_owners(scan.files)

    @property
    def knows_owners(self) -> bool:
        """Whether the image says whose its libraries are."""
        return bool(self._owners or self._rpm_files)

    def needs(self, number: int) -> Sequence[int]:
        """The packages that one needs, by their numbers."""
        package = self._packages[number]
        if package.kind == "rpm":
            return sorted(self._rpms.needs(number) - {number})
        found = set()
        for alternatives in _alternatives(package.kind, package.depends):
            installed = (self._by_name.get((package.kind, name)) for name in alternatives)
            found.add(next((place for place in installed if place is not None), number))
        return sorted(found - {number})

    def owner(self, path: str) -> int | None:
        """The package that brings a library, by its number."""
        owner = self._owners.get(path)
        return self._rpm_files.owner(path) if owner is None else owner

    def _read_owners(self, files: ImageFiles) -> dict[str, int]:
        exact = {
            (package.name, package.architecture): number
            for number, package in enumerate(self._packages)
            if package.kind == "deb"
        }
        owners: dict[str, int] = {}
        for listing, _, paths in files.facts("deb-files"):
            name, architecture = package_of_list(listing)
            number = exact.get((name, architecture), self._by_name.get(("deb", name)))
            if number is None:
                continue
            for path in paths:
                owners[files.resolve(path) or path] = number
        return owners


def _alternatives(kind: str, depends: str) -> Iterator[list[str]]:
    if kind == "deb":
        for part in depends.split(","):
            yield [match[1] for text in part.split("|") if (match := _DEB_NAME.match(text))]
    elif kind == "apk":
        for word in depends.split():
            match = _APK_NAME.match(word)
            if match is not None and not word.startswith("!"):
                yield [match[0]]


def _names(kind: str, provides: str) -> Iterator[str]:
    for alternatives in _alternatives(kind, provides):
        yield from alternatives
