"""Locking wheels against small indexes made by the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stackbuild.lock.model import LockedWheel, OsLock, PythonLock
from stackbuild.progress import SilentObserver
from stackbuild.resolution.wheels.locking import WheelsResult, lock_wheels
from stackbuild.resolution.wheels.uv import Upgrade
from stackbuild.site_config import IndexLocation, SiteConfig
from stackbuild.spec.model import StackSpec
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RetryPolicy
from stackbuild.store.store import Store
from tests.support.wheels import make_wheel

PYTHON = PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311")
OS = OsLock(id="debian", version_id="12", codename="bookworm", glibc="2.36")
HTTP = HttpClient(retry=RetryPolicy(attempts=2, first_delay=0.01), timeout=60)


@dataclass
class Shelf:
    """Indexes as folders, and a store; ``lock`` locks against them."""

    root: Path
    indexes: dict[str, IndexLocation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store(self.root / "store")
        self.folder("default")

    def folder(self, index: str) -> Path:
        """The folder of an index; made and mapped at first."""
        folder = self.root / index
        folder.mkdir(exist_ok=True)
        self.indexes.setdefault(index, IndexLocation(folder=folder))
        return folder

    def wheel(
        self, name: str, version: str, *requires: str, index: str = "default", tag: str = "py3-none-any"
    ) -> Path:
        """Put a wheel on an index."""
        return make_wheel(self.folder(index), name, version, requires=requires, tag=tag)

    def lock(
        self,
        *requirements: str,
        previous: Sequence[LockedWheel] = (),
        upgrade: Upgrade = frozenset(),
        **spec: object,
    ) -> WheelsResult:
        """Lock; keywords are those of the spec."""
        return lock_wheels(
            stack(**spec),
            requirements,
            python=PYTHON,
            os=OS,
            platform="linux/amd64",
            site=SiteConfig(indexes=self.indexes),
            store=self.store,
            previous=previous,
            upgrade=upgrade,
            observer=SilentObserver(),
            http=HTTP,
        )


def stack(**spec: object) -> StackSpec:
    """A spec with these keys."""
    base = {"bootstrap": "debian", "suite": "bookworm"}
    return StackSpec.model_validate({"schema": 1, "name": "t", "base": base, "python": "3.11", **spec})


def versions(wheels: Iterable[LockedWheel]) -> dict[str, str]:
    """Version by name."""
    return {wheel.name: wheel.version for wheel in wheels}
