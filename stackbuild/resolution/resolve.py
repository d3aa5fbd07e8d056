"""Resolving a stack's inputs: base, debs, wheels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import LockError, UsageError
from stackbuild.lock.model import (
    BaseLock,
    BootstrapBaseLock,
    ImageBaseLock,
    Lock,
    LockedDeb,
    LockedWheel,
    PlatformLock,
)
from stackbuild.progress import Observer
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.base import ensure_base
from stackbuild.resolution.bases.bootstrap import resolve_bootstrap
from stackbuild.resolution.bases.bootstrap_base import make_bootstrap_layer
from stackbuild.resolution.bases.image_base import lock_image_base
from stackbuild.resolution.bases.mmdebstrap import mmdebstrap_repositories
from stackbuild.resolution.debs.apt_keys import fetch_apt_keys
from stackbuild.resolution.debs.locking import DebRequest, resolve_debs
from stackbuild.resolution.image_files import image_files
from stackbuild.resolution.os_facts import measure_os
from stackbuild.resolution.timestamps import newest
from stackbuild.resolution.wheels.locking import WheelsResult, lock_wheels
from stackbuild.resolution.wheels.request import wanted_wheels
from stackbuild.resolution.wheels.uv import Upgrade
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import BootstrapBaseSpec, Platform
from stackbuild.spec.requirement_files.interface import Pin
from stackbuild.spec.requirements_input import lock_inputs_sha256
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store

# What `--upgrade` takes, besides names of packages, to move the base.
BASE = "base"


def resolve_stack(
    loaded: LoadedSpec,
    *,
    site: SiteConfig,
    store: Store,
    engine: Engine,
    previous: Lock | None = None,
    upgrade: Upgrade = frozenset(),
    observer: Observer,
) -> Lock:
    """Pin every input of a stack; what of it does not come out the same twice is not asked here.

    Args:
        loaded: The spec.
        site: Mirrors, indexes, certificates.
        store: Keeps what is fetched and made on the way.
        engine: Holds the base and runs apt and Python in it.
        previous: The lock so far; what still fits the spec and can still be had stays as it is there.
        upgrade: Names that may move on from it (wheels, debs, ``base``), or ``all``.
        observer: Told what takes time.

    Returns:
        The lock, without what ``build/stability.py`` measures.

    Raises:
        SpecError: A requirements file is missing or invalid.
        LockError: An input does not exist, cannot be combined, or is not what it should be.
        BuildError: A maker failed.
        NotJudgedError: The engine, a registry, an index or a repository is not there.
        UsageError: ``external-has-no-lock``, ``upgrade-unknown``.
    """
    spec = loaded.spec
    if spec.base is None:
        raise UsageError(
            f"{spec.name} is an external stack: others built its image, so there is nothing to lock",
            code="external-has-no-lock",
            where=str(loaded.path),
            do="Use check, scan and verify on it.",
        )
    if previous is not None and previous.stack != spec.name:
        previous = None
    inputs_sha256 = lock_inputs_sha256(spec, loaded.folder)
    lock = Lock(stack=spec.name, spec_sha256=inputs_sha256, platforms={})
    for platform in spec.platforms:
        before = previous.platforms.get(platform) if previous is not None else None
        locking = _PlatformLocking(loaded, platform, site, store, engine, before, upgrade, observer)
        lock = lock.model_copy(update={"platforms": {**lock.platforms, platform: locking.run()}})
    _refuse_unknown_upgrades(upgrade, lock, previous)
    return lock


@dataclass(frozen=True)
class _PlatformLocking:
    loaded: LoadedSpec
    platform: Platform
    site: SiteConfig
    store: Store
    engine: Engine
    previous: PlatformLock | None
    upgrade: Upgrade
    observer: Observer

    def run(self) -> PlatformLock:
        spec = self.loaded.spec
        base = self._base()
        image = ensure_base(
            base,
            self.platform,
            engine=self.engine,
            store=self.store,
            site=self.site,
            observer=self.observer,
        )
        with image_files(self.engine, image.id) as files:
            os_lock = measure_os(files)
        request = DebRequest(
            packages=spec.apt,
            python="" if spec.python == "none" else spec.python,
            keys=fetch_apt_keys(
                spec.apt_sources, self.store, http=HttpClient(self.site.ca_bundle), observer=self.observer
            ),
        )
        resolution = resolve_debs(
            request,
            image.id,
            engine=self.engine,
            site=self.site,
            keep=self._kept(self.previous.debs if self.previous else ()),
            proxies=os.environ,
            observer=self.observer,
            where=str(self.loaded.path),
        )
        unlocked = PlatformLock(
            base=base,
            os=os_lock,
            python=resolution.python,
            debs=resolution.debs,
            base_upgrades=resolution.base_upgrades,
            created=base.created,
        )
        wheels = self._wheels(unlocked)
        created = self._created(unlocked, wheels.wheels, resolution.released)
        return unlocked.model_copy(
            update={"wheels": wheels.wheels, "findings": wheels.findings, "created": created}
        )

    def _base(self) -> BaseLock:
        spec = self.loaded.spec.base
        before = self.previous.base if self.previous else None
        if isinstance(spec, BootstrapBaseSpec):
            return self._bootstrap(spec, before if isinstance(before, BootstrapBaseLock) else None)
        assert spec is not None
        with RegistryClient(self.site.registries, ca_bundle=self.site.ca_bundle) as client:
            self.observer.stage("base", f"{spec.image}:{spec.tag}")
            return lock_image_base(
                spec,
                self.platform,
                client=client,
                previous=before if isinstance(before, ImageBaseLock) else None,
                upgrade=self._may_move(BASE),
            )

    def _bootstrap(self, spec: BootstrapBaseSpec, before: BootstrapBaseLock | None) -> BootstrapBaseLock:
        if before is not None and before.suite != spec.suite:
            before = None
        resolution = resolve_bootstrap(
            spec.suite,
            self.platform.partition("/")[2],
            mmdebstrap_repositories(spec.suite),
            site=self.site,
            keep=() if before is None or self._may_move(BASE) else self._kept(before.debs),
            observer=self.observer,
        )
        # The lists are dated anew several times a day; only what is taken from them moves the base's date.
        unchanged = before is not None and set(before.debs) == set(resolution.debs)
        created = before.created if before is not None and unchanged else resolution.released
        layer = make_bootstrap_layer(
            resolution.debs,
            spec.suite,
            created=created,
            store=self.store,
            site=self.site,
            observer=self.observer,
        )
        return BootstrapBaseLock(
            distribution=spec.bootstrap,
            suite=spec.suite,
            debs=resolution.debs,
            diff_id=layer.diff_id,
            created=created,
        )

    def _wheels(self, platform_lock: PlatformLock) -> WheelsResult:
        spec = self.loaded.spec
        if platform_lock.python is None:
            return WheelsResult(())
        wanted = wanted_wheels(spec, self.loaded.folder)
        result = lock_wheels(
            wanted.spec,
            wanted.requirements,
            python=platform_lock.python,
            os=platform_lock.os,
            platform=self.platform,
            site=self.site,
            store=self.store,
            previous=self.previous.wheels if self.previous else (),
            upgrade=self.upgrade,
            observer=self.observer,
        )
        _require_pinned_hashes(wanted.pins, result.wheels)
        return result

    def _created(self, unlocked: PlatformLock, wheels: Sequence[LockedWheel], released: str) -> str:
        before = self.previous
        moments = [unlocked.base.created, *(wheel.uploaded for wheel in wheels)]
        if before is not None and set(before.debs) == set(unlocked.debs):
            if before.debs:
                moments.append(before.created)
        elif unlocked.debs:
            moments.append(released)
        return newest(moments)

    def _kept(self, debs: Iterable[LockedDeb]) -> tuple[LockedDeb, ...]:
        return tuple(deb for deb in debs if not self._may_move(deb.name))

    def _may_move(self, name: str) -> bool:
        return self.upgrade == "all" or name in self.upgrade


def _require_pinned_hashes(pins: Iterable[Pin], wheels: Iterable[LockedWheel]) -> None:
    """Refuse a wheel that the team's own file does not allow."""
    allowed = {canonicalize_name(pin.name): pin for pin in pins if pin.hashes}
    for wheel in wheels:
        pin = allowed.get(canonicalize_name(wheel.name))
        if pin is not None and wheel.sha256 not in pin.hashes:
            raise LockError(
                f"{wheel.file} is not among the files that {pin.source} allows",
                code="hash-not-allowed",
                where=pin.source,
                detail="\n".join(
                    [
                        f"index {wheel.index}: sha256 {wheel.sha256}",
                        *(f"allowed: sha256 {h}" for h in pin.hashes),
                    ]
                ),
                do="Update the file with the tool that wrote it, or find out why the index has another wheel.",
            )


def _refuse_unknown_upgrades(upgrade: Upgrade, lock: Lock, previous: Lock | None) -> None:
    if upgrade == "all":
        return
    known = {BASE}
    for one in (lock, previous):
        for platform_lock in one.platforms.values() if one is not None else ():
            known.update(wheel.name for wheel in platform_lock.wheels)
            known.update(deb.name for deb in platform_lock.debs)
            if isinstance(platform_lock.base, BootstrapBaseLock):
                known.update(deb.name for deb in platform_lock.base.debs)
    unknown = sorted(name for name in upgrade if name not in known and canonicalize_name(name) not in known)
    if unknown:
        raise UsageError(
            f"the lock has no {', '.join(unknown)} to upgrade",
            code="upgrade-unknown",
            do="Name wheels, debs or 'base'; `--upgrade` alone moves everything.",
        )
