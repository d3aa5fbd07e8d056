"""The engine's copy of a locked base, whatever its kind, and the repositories that it names."""

from __future__ import annotations

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.lock.model import BaseLock, BootstrapBaseLock
from stackbuild.progress import Observer
from stackbuild.resolution.bases.bootstrap_base import ensure_bootstrap_base
from stackbuild.resolution.bases.image_base import ensure_image_base
from stackbuild.resolution.bases.mmdebstrap import mmdebstrap_repositories, without_host_options
from stackbuild.resolution.debs.apt_sources import AptRepository, read_base_sources
from stackbuild.resolution.image_files import image_files
from stackbuild.site_config import SiteConfig
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store


def ensure_base(
    base: BaseLock,
    platform: str,
    *,
    engine: Engine,
    store: Store,
    site: SiteConfig,
    http: HttpClient | None = None,
    observer: Observer,
) -> ImageInfo:
    """Have the engine hold a locked base: pulled, or made from its debs and loaded, where it is missing.

    Raises:
        LockError: ``base-content-mismatch``, ``no-such-image``, ``deb-superseded``, ``artifact-changed``.
        BuildError: ``bootstrap-failed``, ``bootstrap-differs``, ``disk-full``.
        NotJudgedError: The registry, a repository, the engine or mmdebstrap is not there.
    """
    if isinstance(base, BootstrapBaseLock):
        return ensure_bootstrap_base(
            base, platform, engine=engine, store=store, site=site, http=http, observer=observer
        )
    return ensure_image_base(base, platform, engine=engine, site=site, observer=observer)


def base_repositories(base: BaseLock, image: str, *, engine: Engine) -> tuple[AptRepository, ...]:
    """The apt repositories that the base itself names, for ``fetch_debs``.

    Args:
        base: The locked base.
        image: The base, as the engine knows it.
        engine: Reads an image's files.
    """
    if isinstance(base, BootstrapBaseLock):
        return without_host_options(mmdebstrap_repositories(base.suite))
    with image_files(engine, image) as files:
        return read_base_sources(files)
