"""Which installed distribution needs which: Requires-Dist, evaluated for the environment it is installed in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from stackbuild.lock.wheels_target import Target
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.contents.python import PythonContents, PythonDistribution
from stackbuild.scan.scan import Scan


class PythonGraph:
    """The dependencies between an image's distributions.

    An extra counts where an installed distribution asks for it; what a person asked for at install time is
    recorded nowhere.

    Args:
        scan: The image.
    """

    def __init__(self, scan: Scan) -> None:
        self._python = scan.python
        self._numbers: dict[tuple[str, str], int] = {}
        for number, distribution in enumerate(scan.python.distributions):
            self._numbers.setdefault((distribution.environment, distribution.key), number)
        self._versions = {item.path: item.python for item in scan.python.environments}
        self._scan = scan
        self._markers: dict[str, Mapping[str, str]] = {}
        self._needs = self._resolve()

    def needs(self, number: int) -> Sequence[int]:
        """The distributions that one needs, by their numbers in ``PythonContents.distributions``."""
        return sorted(self._needs.get(number, ()))

    def _resolve(self) -> dict[int, set[int]]:
        distributions = self._python.distributions
        requirements = [list(_requirements(item)) for item in distributions]
        needs: dict[int, set[int]] = {}
        extras: dict[int, set[str]] = {number: {""} for number, _ in enumerate(distributions)}
        pending = list(extras)
        while pending:  # a distribution comes again only when it is asked for a further extra
            number = pending.pop()
            for requirement in requirements[number]:
                if not self._holds(requirement, distributions[number].environment, extras[number]):
                    continue
                found = self._find(distributions[number].environment, canonicalize_name(requirement.name))
                if found is None:
                    continue
                if found != number:
                    needs.setdefault(number, set()).add(found)
                wanted = {canonicalize_name(extra) for extra in requirement.extras}
                if not wanted <= extras[found]:
                    extras[found] |= wanted
                    pending.append(found)
        return needs

    def _holds(self, requirement: Requirement, environment: str, extras: set[str]) -> bool:
        if requirement.marker is None:
            return True
        values = self._values(environment)
        return any(requirement.marker.evaluate({**values, "extra": extra}) for extra in sorted(extras))

    def _values(self, environment: str) -> Mapping[str, str]:
        if environment not in self._markers:
            python = full_python(self._versions.get(environment, ""), self._scan.packages, self._python)
            self._markers[environment] = Target(python, "", self._scan.machine).markers
        return self._markers[environment]

    def _find(self, environment: str, name: str) -> int | None:
        """Beside it; else, in the distribution's own Python, in its other folders."""
        own = self._numbers.get((environment, name))
        if own is not None or not environment.startswith("usr/"):
            return own
        return next(
            (
                number
                for (folder, key), number in self._numbers.items()
                if key == name and folder.startswith("usr/") and folder in self._versions
            ),
            None,
        )


def full_python(version: str, packages: Sequence[SystemPackage], python: PythonContents) -> str:
    """A Python's full version as far as the image says it; ``.0`` stands for a patch level that it does not.

    Args:
        version: Major and minor, for example ``3.12``; empty where the environment's path does not say.
        packages: The image's packages.
        python: Its Python.
    """
    known = version or next((item.python for item in python.environments if item.python), "3.12")
    for package in packages:
        if package.kind == "deb" and package.name == f"python{known}":
            upstream = package.version.partition("-")[0].partition("+")[0].partition("~")[0]
            if all(part.isdecimal() for part in upstream.split(".")):
                return upstream
    return f"{known}.0"


def _requirements(distribution: PythonDistribution) -> Iterator[Requirement]:
    for text in distribution.metadata.get("requires-dist", ()):
        try:
            yield Requirement(text)
        except InvalidRequirement:  # what old or odd metadata says and no installer would act on
            continue
