"""What the repositories of a platform list today of the debs that its lock has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.lock.model import BootstrapBaseLock, LockedDeb, PlatformLock
from stackbuild.nightly.inputs_apt_lists import AptLists, ListedDeb
from stackbuild.nightly.inputs_repositories import locked_repositories
from stackbuild.progress import Observer
from stackbuild.resolution.debs.apt_sources import AptRepository, at_mirrors
from stackbuild.resolution.debs.deb_versions import compare_deb_versions, deb_version_key
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import Platform, StackSpec
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.store import Store

_AT_A_TIME = 8


@dataclass(frozen=True)
class DebLists:
    """What the repositories of a platform list today of its debs, and which could not be read.

    Attributes:
        repositories: The base's own repositories and those of the spec's ``apt-sources``.
        listed: Package name to what is listed of it.
        read: Names of the repositories of which at least one suite was read.
        failed: Errors by repository name; a suite that is gone is a LockError.
    """

    repositories: tuple[AptRepository, ...]
    listed: Mapping[str, tuple[ListedDeb, ...]]
    read: frozenset[str]
    failed: Mapping[str, StackbuildError]

    def newest(self, deb: LockedDeb) -> ListedDeb | None:
        """The newest that is listed of a deb's package for its architecture; None when nothing is."""
        found = [
            item for item in self.listed.get(deb.name, ()) if item.architecture in (deb.architecture, "all")
        ]
        return max(found, key=lambda item: deb_version_key(item.version), default=None)

    def superseding(self, deb: LockedDeb) -> ListedDeb | None:
        """What is newer than the locked deb, if anything."""
        newest = self.newest(deb)
        if newest is None or compare_deb_versions(newest.version, deb.version) <= 0:
            return None
        return newest


def all_debs(lock: PlatformLock) -> tuple[tuple[LockedDeb, str], ...]:
    """Every deb of a platform with a moment at which it was current: those of a bootstrapped base, then the rest."""
    base = lock.base
    own = base.debs if isinstance(base, BootstrapBaseLock) else ()
    return (*((deb, base.created) for deb in own), *((deb, lock.created) for deb in lock.debs))


def read_deb_lists(
    spec: StackSpec,
    lock: PlatformLock,
    platform: Platform,
    *,
    site: SiteConfig,
    store: Store,
    engine: Engine | None,
    http: HttpClient,
    observer: Observer,
) -> DebLists:
    """Read the lists of all suites that a platform's debs were locked from, several at a time.

    Args:
        spec: The spec.
        lock: The platform's lock.
        platform: The platform.
        site: Its mirrors take the repositories' places.
        store: Keeps the lists, for as long as their release stays what it is.
        engine: Reads the sources of an image base; None leaves those out.
        http: Asks the repositories; it is stopped when the run is interrupted.
        observer: Told of progress.

    Raises:
        LockError: As ``locked_repositories``.
        NotJudgedError: As ``locked_repositories``.
    """
    repositories = locked_repositories(
        spec, lock, platform, site=site, store=store, engine=engine, observer=observer
    )
    lists = AptLists(http, store, observer)
    architecture = platform.partition("/")[2]
    names = frozenset(deb.name for deb, _ in all_debs(lock))
    wanted = {deb.repository for deb, _ in all_debs(lock)}
    pairs = [
        (repository, original.name)
        for original, repository in zip(
            repositories, at_mirrors(repositories, site.repositories), strict=True
        )
        if original.name in wanted
    ]

    def read(pair: tuple[AptRepository, str]) -> tuple[ListedDeb, ...] | StackbuildError:
        try:
            return lists.read(*pair, architecture, names, site.mapped_in("repositories", pair[1]))
        except (LockError, NotJudgedError) as error:
            return error

    listed: dict[str, tuple[ListedDeb, ...]] = {}
    failed: dict[str, StackbuildError] = {}
    was_read: set[str] = set()
    answers = in_parallel(read, list(dict.fromkeys(pairs)), http=http, jobs=_AT_A_TIME)
    for (_, name), answer in zip(dict.fromkeys(pairs), answers, strict=True):
        if isinstance(answer, StackbuildError):
            failed.setdefault(name, answer)
            continue
        was_read.add(name)
        for item in answer:
            listed[item.name] = (*listed.get(item.name, ()), item)
    return DebLists(repositories, listed, frozenset(was_read), failed)
