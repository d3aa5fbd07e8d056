"""Resolving wheels: which version of each package, and which file of it, for one platform.

One resolution can be asked several questions: what a lock made now would have, and what it would have if
only some packages moved on. Pages and metadata are fetched once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stackbuild.errors import LockError, StackbuildError
from stackbuild.lock.model import LockedWheel, OsLock, PythonLock
from stackbuild.lock.wheels_target import Target
from stackbuild.progress import Observer
from stackbuild.resolution.wheels.choice import best_wheel, require_published
from stackbuild.resolution.wheels.dependencies import applies
from stackbuild.resolution.wheels.index_bindings import Bindings, bind, wheel_name_of
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.index_router import IndexRouter
from stackbuild.resolution.wheels.index_sources import URL_INDEX, Indexes, PageCache
from stackbuild.resolution.wheels.request import Request, request_of
from stackbuild.resolution.wheels.uv import Question, Upgrade, default_index_url, resolve
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import FrameworkSpec, Platform, StackSpec, WheelUrl
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.store import Store

AT_A_TIME = 8


@dataclass(frozen=True)
class Chosen:
    """A file that was chosen for a package, with the record of the previous lock when it is still the same."""

    package: str
    version: str
    index: str
    file: IndexFile
    kept: LockedWheel | None


@dataclass(frozen=True)
class WheelResolution:
    """What can be asked of one platform's wheels; made by ``wheel_resolution``."""

    spec: StackSpec
    request: Request
    target: Target
    site: SiteConfig
    store: Store
    http: HttpClient
    previous: Mapping[str, LockedWheel]
    observer: Observer
    pages: PageCache | None = None

    @cached_property
    def bindings(self) -> Bindings:
        """Which index each package comes from."""
        return bind(self.spec, self._variant)

    @cached_property
    def indexes(self) -> Indexes:
        """The pages of the indexes, with the wheels that the spec names by URL."""
        indexes = Indexes(
            self.site,
            self.spec.indexes,
            default_url=default_index_url,
            http=self.http,
            observer=self.observer,
            pages=self.pages,
        )
        self._add_wheels_by_url(indexes)
        return indexes

    @cached_property
    def metadata(self) -> MetadataReader:
        """Reads METADATA; each once."""
        return MetadataReader(http=self.http, store=self.store, observer=self.observer)

    @cached_property
    def router(self) -> IndexRouter:
        """The one index that the resolver sees."""
        return IndexRouter(self.indexes, self.bindings, self.metadata)

    def chosen(self, upgrade: Upgrade) -> tuple[Chosen, ...]:
        """Resolve, and choose a file for each package, in the resolver's order.

        Args:
            upgrade: Names (normalised) that may move on from the previous lock, or ``all``.

        Raises:
            LockError: ``wheel-not-found``, ``wheel-yanked``, ``unsolvable``, ``artifact-changed``, or what
                resolving ``auto`` gives.
            NotJudgedError: ``index-unreachable``, ``index-rate-limited``, ``index-denied``, ``transfer-corrupt``,
                ``resolver-failed``.
        """
        if not self.request.direct:
            return ()
        self._require_published()
        versions = self._resolved(upgrade)
        return tuple(self._choose(package, version, upgrade) for package, version in versions.items())

    def _variant(self, package: str, framework: FrameworkSpec) -> str:
        if framework.variant != "auto":
            return str(framework.variant)
        # Only a spec with `auto` pays for reading the fact tables.
        from stackbuild.compat.variants import resolve_auto_variant
        from stackbuild.facts.tables import Facts

        torch = self.request.pinned("torch")
        if torch is None:
            raise LockError(
                f"frameworks.{package}.variant is auto, and torch is not pinned to one version",
                code="auto-without-version",
                do="Name frameworks.torch.version, or a variant such as cu130.",
            )
        choice = resolve_auto_variant(torch.public, self.spec.target, Facts())
        self.observer.note(choice.told)
        return choice.variant

    def _add_wheels_by_url(self, indexes: Indexes) -> None:
        def name(item: WheelUrl) -> str:
            return item.url.rpartition("/")[2].replace("%2B", "+")

        requests = [
            FetchRequest(name(item), (item.url,), item.sha256, not_found_code="wheel-not-found")
            for item in self.request.urls
        ]
        paths = fetch_all(requests, self.store, observer=self.observer, http=self.http) if requests else {}
        for item in self.request.urls:
            path = paths[name(item)]
            size = path.stat().st_size
            indexes.add_file(
                wheel_name_of(item.url), IndexFile(name(item), str(path), sha256=item.sha256, size=size)
            )

    def _require_published(self) -> None:
        self.observer.stage(
            "wheels", f"asking for {len(self.request.direct)} package{'s' * (len(self.request.direct) != 1)}"
        )

        router, bindings = self.router, self.bindings  # made here, once, and not by each thread

        def check(requirement: Requirement) -> None:
            package = canonicalize_name(requirement.name)
            index = bindings.index_of(package)
            require_published(requirement, router.files(package), index, self.target, self.spec)

        overridden = {canonicalize_name(item.name) for item in self.request.overrides}
        wanted = [item for item in self.request.direct if canonicalize_name(item.name) not in overridden]
        in_parallel(check, wanted, http=self.http, jobs=AT_A_TIME)

    def _resolved(self, upgrade: Upgrade) -> dict[str, str]:
        self.observer.stage("wheels", f"resolving for {self.target}")
        question = Question(
            requirements=tuple(map(str, self.request.direct)),
            target=self.target,
            constraints=tuple(map(str, self.request.constraints)),
            overrides=tuple(map(str, self.request.overrides)),
            exclude=tuple(sorted(self.request.exclude)),
            prereleases=tuple(sorted(self.request.prereleases)),
            preferred={name: wheel.version for name, wheel in self.previous.items()},
            upgrade=upgrade,
        )
        router = self.router
        with router.serve() as url:
            try:
                versions = resolve(question, url)
            except StackbuildError as error:
                # The resolver only saw a server that failed; the index behind it has the reason.
                raise router.failure or error from None
        if router.failure is not None:
            raise router.failure
        return versions

    def _choose(self, package: str, version: str, upgrade: Upgrade) -> Chosen:
        files = self.router.files(package) or ()
        index = self.bindings.index_of(package)
        file = best_wheel(files, version, self.target)
        old = self.previous.get(package)
        kept = None
        may_stay = old is not None and index != URL_INDEX and not (upgrade == "all" or package in upgrade)
        if old is not None and may_stay and (old.version, old.index) == (version, index):
            # The file of the previous lock stays, whatever further builds the index has by now.
            same = next((found for found in files if found.name == old.file), None)
            if same is not None:
                file, kept = same, old
                self._require_unchanged(old, same)
        if file is None:
            raise LockError(f"{package} {version} has no wheel for {self.target}", code="wheel-not-found")
        if file.yanked is not None:
            raise LockError(
                f"{package} {version} was withdrawn by its publisher",
                code="wheel-yanked",
                detail=f"reason: {file.yanked}" if file.yanked else "no reason is given",
                do=f"Require another version of {package}, or lock again with --upgrade {package}.",
            )
        return Chosen(package, str(file.version), index, file, kept)

    def _require_unchanged(self, old: LockedWheel, now: IndexFile) -> None:
        if now.sha256 in (None, old.sha256) or not self.site.trusts_hashes(old.index):
            return
        raise LockError(
            f"{old.file} has been changed on the index {old.index}; the lock is kept",
            code="artifact-changed",
            detail=f"locked: sha256 {old.sha256}\nfound:  sha256 {now.sha256}",
            do=f"Find out who changed it. Only if the new file is wanted, lock again with --upgrade {old.name}.",
        )


def wheel_resolution(
    spec: StackSpec,
    requirements: Iterable[str],
    *,
    python: PythonLock,
    os: OsLock,
    platform: Platform,
    site: SiteConfig,
    store: Store,
    previous: Sequence[LockedWheel] = (),
    observer: Observer,
    http: HttpClient | None = None,
    pages: PageCache | None = None,
) -> WheelResolution:
    """Prepare the resolution of one platform's wheels; the arguments are those of ``lock_wheels``.

    Args:
        pages: What was fetched already; None for nothing.

    Raises:
        LockError: ``requirement-invalid``.
    """
    target = Target.of(python, os, platform)
    return WheelResolution(
        spec=spec,
        request=request_of(spec, requirements, lambda item: applies(item, target)),
        target=target,
        site=site,
        store=store,
        http=(http or HttpClient(site.ca_bundle)).scoped(),
        previous={wheel.name: wheel for wheel in previous},
        observer=observer,
        pages=pages,
    )
