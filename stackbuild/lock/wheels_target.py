"""The environment wheels are locked for: tags, markers, and how the resolver is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.version import Version

from stackbuild.lock.model import OsLock, PythonLock
from stackbuild.spec.model import Platform
from stackbuild.spec.platforms import MACHINES, marker_values

# The older names of three policies (PEP 600 §Legacy manylinux tags).
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
# The oldest policy per machine: manylinux1 was for x86 alone, manylinux2014 the first for ARM.
_OLDEST = {"x86_64": 5, "aarch64": 17}
# The policies the resolver has names for (uv, `--python-platform`).
_RESOLVER_POLICIES = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)


@dataclass(frozen=True)
class Target:
    """The base's own Python on its own glibc.

    Args:
        python: Full version, for example ``3.11.2``.
        glibc: For example ``2.36``.
        machine: ``x86_64`` or ``aarch64``.
    """

    python: str
    glibc: str
    machine: str

    @classmethod
    def of(cls, python: PythonLock, os: OsLock, platform: Platform) -> Target:
        """The target of a platform."""
        return cls(python.version, os.glibc, MACHINES[platform])

    @property
    def resolver_platform(self) -> str:
        """What ``uv --python-platform`` is given: the newest policy it knows that the glibc satisfies."""
        known = [minor for minor in _RESOLVER_POLICIES if minor <= self._glibc_minor]
        return f"{self.machine}-manylinux_2_{known[-1] if known else _RESOLVER_POLICIES[0]}"

    @property
    def interpreter(self) -> str:
        """The interpreter tag, for example ``cp311``."""
        release = Version(self.python).release
        return f"cp{release[0]}{release[1]}"

    @cached_property
    def ranks(self) -> dict[Tag, int]:
        """Every tag the target can install, with its rank; 0 is the best."""
        release = Version(self.python).release[:2]
        interpreter = self.interpreter
        platforms = list(self._platforms())
        tags = [
            *cpython_tags(release, [interpreter], platforms),
            *compatible_tags(release, interpreter, platforms),
        ]
        ranks: dict[Tag, int] = {}
        for rank, tag in enumerate(tags):
            ranks.setdefault(tag, rank)
        return ranks

    @cached_property
    def markers(self) -> dict[str, str]:
        """The values of environment markers (the dependency specifiers of the packaging user guide)."""
        return marker_values(self.python, self.machine)

    def rank(self, tags: Iterable[Tag]) -> int | None:
        """How well a wheel of these tags suits the target, 0 best; None when it cannot be installed."""
        ranks = [self.ranks[tag] for tag in tags if tag in self.ranks]
        return min(ranks, default=None)

    def __str__(self) -> str:
        return f"Python {self.python}, glibc {self.glibc}, {self.machine}"

    @property
    def _glibc_minor(self) -> int:
        return Version(self.glibc).minor

    def _platforms(self) -> list[str]:
        names = []
        for minor in range(self._glibc_minor, _OLDEST[self.machine] - 1, -1):
            names.append(f"manylinux_2_{minor}_{self.machine}")
            if minor in _LEGACY:
                names.append(f"{_LEGACY[minor]}_{self.machine}")
        return [*names, f"linux_{self.machine}"]
