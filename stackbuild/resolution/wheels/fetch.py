"""Getting locked wheels at build time: names and file names back to bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stackbuild.lock.model import LockedWheel, PlatformLock
from stackbuild.progress import Observer, SilentObserver
from stackbuild.resolution.wheels.index_sources import URL_INDEX, Indexes
from stackbuild.resolution.wheels.uv import default_index_url
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import IndexSpec
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.store import Store

_PAGES_AT_A_TIME = 8


def fetch_wheels(
    platform_lock: PlatformLock,
    site: SiteConfig,
    store: Store,
    observer: Observer,
    *,
    indexes: Mapping[str, IndexSpec] | None = None,
    http: HttpClient | None = None,
) -> dict[str, Path]:
    """Bring all locked wheels into the store and return where each lies, by file name.

    Args:
        platform_lock: Names the wheels.
        site: Says where indexes are.
        store: Where they go; what is there is not fetched, and no index is asked for it.
        observer: Told of the progress.
        indexes: The spec's own indexes.
        http: The client; one with the site's CA bundle when None.

    Raises:
        LockError: A wheel was changed (``artifact-changed``) or is gone from its index (``wheel-not-found``).
        NotJudgedError: An index is down or limiting (``index-unreachable``), or a line garbles
            (``transfer-corrupt``).
        BuildError: The disk is full (``disk-full``).
    """
    found = {wheel.file: store.blob(wheel.sha256) for wheel in platform_lock.wheels}
    missing = [wheel for wheel in platform_lock.wheels if found[wheel.file] is None]
    there = {file: path for file, path in found.items() if path is not None}
    if not missing:
        return there
    observer.stage("wheels", f"{len(missing)} to fetch")
    http = (http or HttpClient(site.ca_bundle)).scoped()
    candidates = _all_candidates(missing, site, indexes, http, observer)
    requests = [
        FetchRequest(wheel.file, tuple(urls), wheel.sha256, wheel.size, "wheel-not-found")
        for wheel, urls in zip(missing, candidates, strict=True)
    ]
    return there | fetch_all(requests, store, observer=observer, http=http)


def wheel_locations(
    platform_lock: PlatformLock,
    site: SiteConfig,
    *,
    indexes: Mapping[str, IndexSpec] | None = None,
    http: HttpClient | None = None,
) -> dict[str, str]:
    """Return where each locked wheel is now, by file name; one that its index has no more is left out.

    Hosts are in no lock: they come from the page of the wheel's index, wherever the site file puts that.

    Raises:
        NotJudgedError: An index is down or limiting (``index-unreachable``).
        LockError: Nothing says where an index is (``index-unknown``).
    """
    http = (http or HttpClient(site.ca_bundle)).scoped()
    candidates = _all_candidates(platform_lock.wheels, site, indexes, http, SilentObserver())
    return {wheel.file: urls[0] for wheel, urls in zip(platform_lock.wheels, candidates, strict=True) if urls}


def _all_candidates(
    wheels: Sequence[LockedWheel],
    site: SiteConfig,
    declared: Mapping[str, IndexSpec] | None,
    http: HttpClient,
    observer: Observer,
) -> list[list[str]]:
    indexes = Indexes(site, declared or {}, default_url=default_index_url, http=http, observer=observer)
    return in_parallel(lambda wheel: _candidates(wheel, indexes), wheels, http=http, jobs=_PAGES_AT_A_TIME)


def _candidates(wheel: LockedWheel, indexes: Indexes) -> list[str]:
    if wheel.index == URL_INDEX:
        return [wheel.url] if wheel.url else []
    files = indexes.page(wheel.index, wheel.name) or ()
    return [file.url for file in files if file.name == wheel.file]
