"""Locking wheels: from requirements to files with hashes (DESIGN §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stackbuild.errors import LockError, StackbuildError
from stackbuild.findings import Finding
from stackbuild.lock.index_bindings import Bindings, bind, wheel_name_of
from stackbuild.lock.index_metadata import MetadataReader
from stackbuild.lock.index_page import IndexFile
from stackbuild.lock.index_router import IndexRouter
from stackbuild.lock.index_sources import URL_INDEX, Indexes
from stackbuild.lock.model import LockedWheel, OsLock, PythonLock
from stackbuild.lock.wheels_choice import best_wheel, require_published
from stackbuild.lock.wheels_dependencies import applies, dependencies_of
from stackbuild.lock.wheels_fetch import fetch_wheels, wheel_candidates
from stackbuild.lock.wheels_findings import index_hashes, mixed_cuda_majors, older_for_a_wheel
from stackbuild.lock.wheels_group import group_of
from stackbuild.lock.wheels_request import Request, request_of
from stackbuild.lock.wheels_target import Target
from stackbuild.lock.wheels_uv import Question, Upgrade, default_index_url, resolve
from stackbuild.progress import Observer
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import FrameworkSpec, Platform, StackSpec, WheelUrl
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.store import Store

__all__ = ["WheelsResult", "fetch_wheels", "lock_wheels", "wheel_candidates"]

_AT_A_TIME = 8


@dataclass(frozen=True)
class WheelsResult:
    """The locked wheels in name order, and what was noticed."""

    wheels: tuple[LockedWheel, ...]
    findings: tuple[Finding, ...] = ()


def lock_wheels(
    spec: StackSpec,
    requirements: Iterable[str],
    *,
    python: PythonLock,
    os: OsLock,
    platform: Platform,
    site: SiteConfig,
    store: Store,
    previous: Sequence[LockedWheel] = (),
    upgrade: Upgrade = frozenset(),
    observer: Observer,
    http: HttpClient | None = None,
) -> WheelsResult:
    """Resolve and pin all wheels of one platform.

    Args:
        spec: The spec; its frameworks, wheels by URL, indexes, overrides, constraints, exclude and prereleases
            count, and its target where a variant is ``auto``.
        requirements: The spec's packages, with those of its requirements files, as PEP 508 strings.
        python: The base's Python.
        os: The base's system, for its glibc.
        platform: The platform.
        site: Where indexes are, and whose hashes are trusted.
        store: Keeps the wheels that have to be fetched to be hashed.
        previous: The wheels of the previous lock; their versions and files are kept where they can be.
        upgrade: Normalised names that may move on from the previous lock, or ``all``.
        observer: Told of the progress.
        http: The client; one with the site's CA bundle when None.

    Raises:
        LockError: ``wheel-not-found``, ``wheel-yanked``, ``unsolvable``, ``artifact-changed``,
            ``mixed-cuda-majors``, ``requirement-invalid``, or what resolving ``auto`` gives.
        NotJudgedError: ``index-unreachable``, ``index-denied``, ``transfer-corrupt``, ``resolver-failed``.
    """
    job = _WheelLocking(
        spec=spec,
        request=request_of(spec, requirements, lambda item: applies(item, Target.of(python, os, platform))),
        target=Target.of(python, os, platform),
        site=site,
        store=store,
        http=(http or HttpClient(site.ca_bundle)).scoped(),
        previous={wheel.name: wheel for wheel in previous},
        upgrade=upgrade if upgrade == "all" else frozenset(map(canonicalize_name, upgrade)),
        observer=observer,
    )
    return job.run()


@dataclass(frozen=True)
class _Chosen:
    """A file that was chosen for a package, with the record of the previous lock when it is still the same."""

    package: str
    version: str
    index: str
    file: IndexFile
    kept: LockedWheel | None


@dataclass(frozen=True)
class _WheelLocking:
    spec: StackSpec
    request: Request
    target: Target
    site: SiteConfig
    store: Store
    http: HttpClient
    previous: Mapping[str, LockedWheel]
    upgrade: Upgrade
    observer: Observer

    def run(self) -> WheelsResult:
        if not self.request.direct:
            return WheelsResult(())
        bindings = bind(self.spec, self._variant)
        indexes = Indexes(
            self.site,
            self.spec.indexes,
            default_url=default_index_url,
            http=self.http,
            observer=self.observer,
        )
        metadata = MetadataReader(http=self.http, store=self.store, observer=self.observer)
        self._add_wheels_by_url(indexes)
        router = IndexRouter(indexes, bindings, metadata)
        self._require_published(router, bindings)
        versions = self._resolved(router)
        chosen = [self._choose(router, bindings, package, version) for package, version in versions.items()]
        measured = self._measured(chosen)
        by_name = {item.package: item for item in chosen}
        read = in_parallel(
            lambda item: metadata.read(item.index, item.file), chosen, http=self.http, jobs=_AT_A_TIME
        )
        metadata_of = dict(zip(by_name, read, strict=True))
        dependencies = dependencies_of(
            by_name,
            metadata_of.__getitem__,
            (*self.request.direct, *self.request.overrides),
            self.target,
        )
        frameworks = frozenset(map(canonicalize_name, self.spec.frameworks))
        urls = {wheel_name_of(item.url): item.url for item in self.request.urls}
        wheels = tuple(
            LockedWheel(
                name=item.package,
                version=item.version,
                index=item.index,
                file=item.file.name,
                url=urls[item.package] if item.index == URL_INDEX else None,
                sha256=measured[item.package][0],
                size=measured[item.package][1],
                uploaded=item.kept.uploaded if item.kept else item.file.uploaded,
                group=group_of(item.package, frameworks),
                requires=dependencies.requires[item.package],
                requested=item.package in self.request.named,
            )
            for item in sorted(chosen, key=lambda item: item.package)
        )
        stated = {
            item.file.name: item.file.sha256
            for item in chosen
            if not self._trusted(item) and not indexes.is_folder(item.index)
        }
        findings = (
            *mixed_cuda_majors(wheels, self.spec.waivers),
            *index_hashes(stated, wheels),
            *older_for_a_wheel(
                wheels,
                lambda package: router.files(package) or (),
                self._asked(dependencies.asked),
                self.request.prereleases,
                self.target,
            ),
        )
        return WheelsResult(wheels, findings)

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
        self.observer.note(f"variant auto is {choice.variant} for torch {torch.public}")
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

    def _require_published(self, router: IndexRouter, bindings: Bindings) -> None:
        self.observer.stage(
            "wheels", f"asking for {len(self.request.direct)} package{'s' * (len(self.request.direct) != 1)}"
        )

        def check(requirement: Requirement) -> None:
            package = canonicalize_name(requirement.name)
            require_published(requirement, router.files(package), bindings.index_of(package), self.target)

        overridden = {canonicalize_name(item.name) for item in self.request.overrides}
        wanted = [item for item in self.request.direct if canonicalize_name(item.name) not in overridden]
        in_parallel(check, wanted, http=self.http, jobs=_AT_A_TIME)

    def _resolved(self, router: IndexRouter) -> dict[str, str]:
        self.observer.stage("wheels", f"resolving for {self.target}")
        question = Question(
            requirements=tuple(map(str, self.request.direct)),
            target=self.target,
            constraints=tuple(map(str, self.request.constraints)),
            overrides=tuple(map(str, self.request.overrides)),
            exclude=tuple(sorted(self.request.exclude)),
            prereleases=tuple(sorted(self.request.prereleases)),
            preferred={name: wheel.version for name, wheel in self.previous.items()},
            upgrade=self.upgrade,
        )
        with router.serve() as url:
            try:
                versions = resolve(question, url)
            except StackbuildError as error:
                # The resolver only saw a server that failed; the index behind it has the reason.
                raise router.failure or error from None
        if router.failure is not None:
            raise router.failure
        return versions

    def _choose(self, router: IndexRouter, bindings: Bindings, package: str, version: str) -> _Chosen:
        files = router.files(package) or ()
        index = bindings.index_of(package)
        file = best_wheel(files, version, self.target)
        old = self.previous.get(package)
        kept = None
        may_stay = old is not None and index != URL_INDEX and not self._may_move(package)
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
        return _Chosen(package, str(file.version), index, file, kept)

    def _require_unchanged(self, old: LockedWheel, now: IndexFile) -> None:
        if now.sha256 in (None, old.sha256) or not self.site.trusts_hashes(old.index):
            return
        raise LockError(
            f"{old.file} has been changed on the index {old.index}; the lock is kept",
            code="artifact-changed",
            detail=f"locked: sha256 {old.sha256}\nfound:  sha256 {now.sha256}",
            do=f"Find out who changed it. Only if the new file is wanted, lock again with --upgrade {old.name}.",
        )

    def _may_move(self, package: str) -> bool:
        return self.upgrade == "all" or package in self.upgrade

    def _trusted(self, item: _Chosen) -> bool:
        complete = item.file.sha256 is not None and item.file.size is not None
        return complete and (item.index == URL_INDEX or self.site.trusts_hashes(item.index))

    def _measured(self, chosen: Sequence[_Chosen]) -> dict[str, tuple[str, int]]:
        """Package to sha256 and bytes; what the index is not trusted with is fetched and hashed."""
        known: dict[str, tuple[str, int]] = {}
        fetched: list[_Chosen] = []
        for item in chosen:
            if item.kept is not None:
                known[item.package] = (item.kept.sha256, item.kept.size)
            elif self._trusted(item):
                known[item.package] = (str(item.file.sha256), int(item.file.size or 0))
            else:
                fetched.append(item)
        if fetched:
            self.observer.stage("wheels", f"{len(fetched)} to fetch and hash")
            requests = [
                FetchRequest(
                    item.file.name,
                    (item.file.url,),
                    size=item.file.size,
                    stated=item.file.sha256,
                    not_found_code="wheel-not-found",
                )
                for item in fetched
            ]
            paths = fetch_all(requests, self.store, observer=self.observer, http=self.http)
            for item in fetched:
                path = paths[item.file.name]
                known[item.package] = (path.name, path.stat().st_size)
        return known

    def _asked(self, asked: Sequence[Requirement]) -> tuple[Requirement, ...]:
        overridden = {canonicalize_name(item.name) for item in self.request.overrides}
        kept = (item for item in asked if canonicalize_name(item.name) not in overridden)
        return (*kept, *self.request.overrides, *self.request.constraints)
