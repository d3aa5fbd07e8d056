"""Where the locked debs are fetched: the store, then a mirror, then a snapshot archive (DESIGN §3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from stackbuild.lock.model import LockedDeb
from stackbuild.progress import Observer
from stackbuild.resolution.debs.apt_sources import AptRepository, repository_uris
from stackbuild.site_config import SiteConfig
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store

SUPERSEDED = "deb-superseded"


def deb_candidates(
    deb: LockedDeb, uris: Mapping[str, Iterable[str]], *, created: str, snapshot: str | None
) -> tuple[str, ...]:
    """The URLs a deb may be fetched from, in order: the site's mirror, the base's own, the snapshot archive.

    Args:
        deb: The deb.
        uris: Repository name → URIs (``repository_uris``).
        created: RFC 3339; a moment at which the deb was current.
        snapshot: Root of the snapshot archive, laid out as Debian's: ``archive/NAME/TIMESTAMP/PATH``; or a
            URL with ``{repository}``, ``{timestamp}`` and ``{path}`` in their places.
    """
    path = quote(deb.path, safe="/+:~")
    found = [f"{uri}/{path}" for uri in uris.get(deb.repository, ())]
    if snapshot is not None:
        timestamp = created.replace("-", "").replace(":", "").partition(".")[0].removesuffix("Z") + "Z"
        if "{path}" in snapshot:
            url = snapshot.replace("{repository}", deb.repository).replace("{timestamp}", timestamp)
            found.append(url.replace("{path}", path))
        else:
            found.append(f"{snapshot.rstrip('/')}/archive/{deb.repository}/{timestamp}/{path}")
    return tuple(found)


def fetch_debs(
    debs: Iterable[LockedDeb],
    repositories: Iterable[AptRepository],
    *,
    created: str,
    store: Store,
    site: SiteConfig,
    http: HttpClient | None = None,
    observer: Observer,
) -> list[tuple[LockedDeb, Path]]:
    """Bring debs into the store, each checked against its sha256.

    Args:
        debs: What the lock lists.
        repositories: The base's own repositories, and the spec's further ones.
        created: RFC 3339; a moment at which the debs were current.
        store: Where they go.
        site: Mirrors, snapshot archive, certificates.
        http: The client; None for one with the site's certificates.
        observer: Told of progress.

    Returns:
        Each deb with its file, in the order given.

    Raises:
        LockError: ``deb-superseded`` when nobody has one any more: lock again. ``artifact-changed``.
        NotJudgedError: ``index-unreachable``, ``transfer-corrupt``.
    """
    chosen = tuple(debs)
    uris = repository_uris(repositories, site.repositories)
    requests = [
        FetchRequest(
            name=f"{deb.name}_{deb.version}_{deb.architecture}.deb",
            candidates=deb_candidates(deb, uris, created=created, snapshot=site.snapshot),
            sha256=deb.sha256,
            size=deb.size,
            not_found_code=SUPERSEDED,
        )
        for deb in chosen
    ]
    paths = fetch_all(requests, store, observer=observer, http=http or HttpClient(ca_bundle=site.ca_bundle))
    return [(deb, paths[request.name]) for deb, request in zip(chosen, requests, strict=True)]
