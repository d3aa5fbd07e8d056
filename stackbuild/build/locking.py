"""Locking a stack: its inputs, and what of them does not come out the same twice (DESIGN §3.2)."""

from __future__ import annotations

from stackbuild.build.stability import measure_stability
from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.model import Lock
from stackbuild.progress import Observer
from stackbuild.resolution.resolve import resolve_stack
from stackbuild.resolution.wheels.uv import Upgrade
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.store.store import Store


def lock_stack(
    loaded: LoadedSpec,
    *,
    site: SiteConfig,
    store: Store,
    engine: Engine,
    previous: Lock | None = None,
    upgrade: Upgrade = frozenset(),
    observer: Observer,
) -> Lock:
    """Pin every input of a stack, then make its layers and name in the lock what differs the second time.

    Args:
        loaded: The spec.
        site: Mirrors, indexes, certificates.
        store: Keeps what is fetched and made on the way.
        engine: Holds the base and runs apt and Python in it.
        previous: The lock so far; what still fits the spec and can still be had stays as it is there.
        upgrade: Names that may move on from it (wheels, debs, ``base``), or ``all``.
        observer: Told what takes time.

    Returns:
        The lock; equal to ``previous`` when nothing moved.

    Raises:
        SpecError: A requirements file is missing or invalid.
        LockError: An input does not exist, cannot be combined, or is not what it should be.
        BuildError: A maker failed.
        NotJudgedError: The engine, a registry, an index or a repository is not there.
        UsageError: ``external-has-no-lock``, ``upgrade-unknown``.
    """
    lock = resolve_stack(
        loaded, site=site, store=store, engine=engine, previous=previous, upgrade=upgrade, observer=observer
    )
    for platform in loaded.spec.platforms:
        stability = measure_stability(
            loaded.spec,
            loaded.folder,
            lock,
            platform,
            engine=engine,
            store=store,
            site=site,
            observer=observer,
        )
        measured = lock.platforms[platform].model_copy(
            update={
                "bytecode_left_out": stability.bytecode_left_out,
                "bytecode_failed": stability.bytecode_failed,
            }
        )
        lock = lock.model_copy(update={"platforms": {**lock.platforms, platform: measured}})
    return lock
