"""Building for another platform than the engine's own: possible where no program of it need run, or emulation runs it."""

from __future__ import annotations

from stackbuild.engine.docker_engine import Engine
from stackbuild.layers.container_files import workshop
from stackbuild.lock.model import BootstrapBaseLock, PlatformLock
from stackbuild.progress import Observer
from stackbuild.resolution.bases.base import ensure_base
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store


def require_runnable(
    lock: PlatformLock,
    platform: Platform,
    *,
    engine: Engine,
    store: Store,
    site: SiteConfig,
    observer: Observer,
) -> None:
    """Refuse a platform whose programs the engine cannot run, before its wheels are fetched.

    apt installs debs and Python compiles byte-code in containers of the base; all other layers are made without
    running anything. A base made of debs says it by itself, when it is made.

    Args:
        lock: The platform's part of the lock.
        platform: The platform.
        engine: Runs the base.
        store: As ``ensure_base``.
        site: As ``ensure_base``.
        observer: Told of a pull.

    Raises:
        NotJudgedError: ``foreign-architecture``; and as ``ensure_base``.
        LockError: As ``ensure_base``.
    """
    if platform == engine.platform() or isinstance(lock.base, BootstrapBaseLock):
        return
    if lock.python is None and not lock.debs:
        return
    base = ensure_base(lock.base, platform, engine=engine, store=store, site=site, observer=observer)
    with workshop(engine, base.id, {}) as container:
        container.exec(["true"])
