"""The apt repositories that a platform's debs were locked from."""

from __future__ import annotations

from stackbuild.engine.docker_engine import Engine
from stackbuild.lock.model import BootstrapBaseLock, PlatformLock
from stackbuild.progress import Observer
from stackbuild.resolution.bases.base import base_repositories, ensure_base
from stackbuild.resolution.bases.mmdebstrap import mmdebstrap_repositories, without_host_options
from stackbuild.resolution.debs.apt_keys import apt_source_repository
from stackbuild.resolution.debs.apt_sources import AptRepository
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import Platform, StackSpec
from stackbuild.store.store import Store


def locked_repositories(
    spec: StackSpec,
    lock: PlatformLock,
    platform: Platform,
    *,
    site: SiteConfig,
    store: Store,
    engine: Engine | None,
    observer: Observer,
) -> tuple[AptRepository, ...]:
    """The base's own repositories and those of the spec's ``apt-sources``.

    Args:
        spec: The spec.
        lock: The platform's lock.
        platform: The platform.
        site: Where an image base is pulled from.
        store: Where a bootstrapped base would be made.
        engine: Reads the sources of an image base, which it pulls where it lacks it; None leaves those out.
        observer: Told of progress.

    Raises:
        LockError: As ``ensure_base``.
        NotJudgedError: As ``ensure_base`` and ``mmdebstrap_repositories``.
    """
    further = tuple(apt_source_repository(source) for source in spec.apt_sources)
    base = lock.base
    if isinstance(base, BootstrapBaseLock):
        return (*without_host_options(mmdebstrap_repositories(base.suite)), *further)
    if engine is None:
        return further
    image = ensure_base(base, platform, engine=engine, store=store, site=site, observer=observer)
    return (*base_repositories(base, image.id, engine=engine), *further)
