"""The locked files of a stack on this machine: out of the store, else fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stackbuild.build.base import Base
from stackbuild.build.interface import BuildRequest
from stackbuild.engine.docker_engine import Engine
from stackbuild.layers.debs_repository import LocalDeb
from stackbuild.lock.model import LockedDeb, LockedWheel
from stackbuild.progress import Observer
from stackbuild.resolution.bases.base import base_repositories
from stackbuild.resolution.debs.apt_keys import apt_source_repository
from stackbuild.resolution.debs.deb_files import fetch_debs
from stackbuild.resolution.wheels.fetch import fetch_wheels
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store


class LockedInputs:
    """Debs and wheels of one stack.

    Args:
        request: The stack.
        base: Its base; says which repositories its debs come from.
        engine: Holds the base.
        store: Keeps the files.
        site: Mirrors.
        observer: Told of fetches.
    """

    def __init__(
        self,
        request: BuildRequest,
        base: Base,
        *,
        engine: Engine,
        store: Store,
        site: SiteConfig,
        observer: Observer,
    ) -> None:
        self._request = request
        self._base = base
        self._engine = engine
        self._store = store
        self._site = site
        self._observer = observer

    def debs(self, wanted: Sequence[LockedDeb]) -> Sequence[LocalDeb]:
        """Each package with its verified file, in the order given.

        Raises:
            LockError: ``deb-superseded``, ``artifact-changed``.
            NotJudgedError: ``index-unreachable``, ``transfer-corrupt``.
        """
        there = [(deb, path) for deb in wanted if (path := self._store.blob(deb.sha256)) is not None]
        if len(there) == len(wanted):
            return there
        lock = self._request.platform_lock
        repositories = base_repositories(lock.base, self._base.image(), engine=self._engine)
        further = [apt_source_repository(source) for source in self._request.spec.apt_sources]
        self._observer.stage("debs", f"{len(wanted) - len(there)} to fetch")
        return fetch_debs(
            wanted,
            [*repositories, *further],
            created=lock.created,
            store=self._store,
            site=self._site,
            observer=self._observer,
        )

    def wheels(self, wanted: Sequence[LockedWheel]) -> Mapping[str, Path]:
        """The verified file of each wheel, by sha256.

        Raises:
            LockError: ``wheel-not-found``, ``artifact-changed``.
            NotJudgedError: ``index-unreachable``, ``transfer-corrupt``.
        """
        lock = self._request.platform_lock.model_copy(update={"wheels": tuple(wanted)})
        paths = fetch_wheels(
            lock, self._site, self._store, self._observer, indexes=self._request.spec.indexes
        )
        return {wheel.sha256: paths[wheel.file] for wheel in wanted}
