"""Locking wheels: from requirements to files with hashes (DESIGN §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stackbuild.findings import Finding
from stackbuild.lock.model import LockedWheel, OsLock, PythonLock
from stackbuild.progress import Observer
from stackbuild.resolution.wheels.dependencies import dependencies_of
from stackbuild.resolution.wheels.findings import index_hashes, mixed_cuda_majors, older_for_a_wheel
from stackbuild.resolution.wheels.group import group_of
from stackbuild.resolution.wheels.index_bindings import wheel_name_of
from stackbuild.resolution.wheels.index_sources import URL_INDEX
from stackbuild.resolution.wheels.resolution import AT_A_TIME, Chosen, WheelResolution, wheel_resolution
from stackbuild.resolution.wheels.uv import Upgrade
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import Platform, StackSpec
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.store import Store


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
    resolution = wheel_resolution(
        spec,
        requirements,
        python=python,
        os=os,
        platform=platform,
        site=site,
        store=store,
        previous=previous,
        observer=observer,
        http=http,
    )
    moving: Upgrade = upgrade if upgrade == "all" else frozenset(map(canonicalize_name, upgrade))
    return _WheelLocking(resolution, moving).run()


@dataclass(frozen=True)
class _WheelLocking:
    resolution: WheelResolution
    upgrade: Upgrade

    def run(self) -> WheelsResult:
        resolution = self.resolution
        request, spec = resolution.request, resolution.spec
        chosen = resolution.chosen(self.upgrade)
        if not chosen:
            return WheelsResult(())
        measured = self._measured(chosen)
        by_name = {item.package: item for item in chosen}
        metadata = resolution.metadata
        read = in_parallel(
            lambda item: metadata.read(item.index, item.file), chosen, http=resolution.http, jobs=AT_A_TIME
        )
        metadata_of = dict(zip(by_name, read, strict=True))
        dependencies = dependencies_of(
            by_name,
            metadata_of.__getitem__,
            (*request.direct, *request.overrides),
            resolution.target,
        )
        frameworks = frozenset(map(canonicalize_name, spec.frameworks))
        urls = {wheel_name_of(item.url): item.url for item in request.urls}
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
                requested=item.package in request.named,
            )
            for item in sorted(chosen, key=lambda item: item.package)
        )
        stated = {
            item.file.name: item.file.sha256
            for item in chosen
            if not self._trusted(item) and not resolution.indexes.is_folder(item.index)
        }
        findings = (
            *mixed_cuda_majors(wheels, spec.waivers),
            *index_hashes(stated, wheels),
            *older_for_a_wheel(
                wheels,
                lambda package: resolution.router.files(package) or (),
                self._asked(dependencies.asked),
                request.prereleases,
                resolution.target,
            ),
        )
        return WheelsResult(wheels, findings)

    def _trusted(self, item: Chosen) -> bool:
        complete = item.file.sha256 is not None and item.file.size is not None
        return complete and (item.index == URL_INDEX or self.resolution.site.trusts_hashes(item.index))

    def _measured(self, chosen: Sequence[Chosen]) -> dict[str, tuple[str, int]]:
        """Package to sha256 and bytes; what the index is not trusted with is fetched and hashed."""
        known: dict[str, tuple[str, int]] = {}
        fetched: list[Chosen] = []
        for item in chosen:
            if item.kept is not None:
                known[item.package] = (item.kept.sha256, item.kept.size)
            elif self._trusted(item):
                known[item.package] = (str(item.file.sha256), int(item.file.size or 0))
            else:
                fetched.append(item)
        if fetched:
            self.resolution.observer.stage("wheels", f"{len(fetched)} to fetch and hash")
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
            paths = fetch_all(
                requests, self.resolution.store, observer=self.resolution.observer, http=self.resolution.http
            )
            for item in fetched:
                path = paths[item.file.name]
                known[item.package] = (path.name, path.stat().st_size)
        return known

    def _asked(self, asked: Sequence[Requirement]) -> tuple[Requirement, ...]:
        overridden = {canonicalize_name(item.name) for item in self.resolution.request.overrides}
        kept = (item for item in asked if canonicalize_name(item.name) not in overridden)
        return (*kept, *self.resolution.request.overrides, *self.resolution.request.constraints)
