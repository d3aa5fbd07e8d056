"""A bootstrapped base as an image: its one layer, its configuration, and the engine's copy of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from stackbuild.digests import digest_of, short_hex
from stackbuild.engine.archive import docker_archive
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import BuildError, NotJudgedError
from stackbuild.layers.bootstrap import bootstrap_key, bootstrap_rootfs
from stackbuild.lock.base import bootstrap_config
from stackbuild.lock.model import BootstrapBaseLock, LockedDeb
from stackbuild.progress import Observer
from stackbuild.resolution.bases.mmdebstrap import mmdebstrap_repositories, without_host_options
from stackbuild.resolution.debs.apt_sources import sources_text
from stackbuild.resolution.debs.deb_files import fetch_debs
from stackbuild.site_config import SiteConfig
from stackbuild.store.http import HttpClient
from stackbuild.store.layer_sink import StoredLayer
from stackbuild.store.store import Store

_RECORD = "bootstrap"
_REPOSITORY = "stackbuild/bootstrap"


def make_bootstrap_layer(
    debs: Sequence[LockedDeb],
    suite: str,
    *,
    created: str,
    store: Store,
    site: SiteConfig,
    http: HttpClient | None = None,
    observer: Observer,
) -> StoredLayer:
    """The root file system of these debs; where the store has it, no deb is fetched.

    Args:
        debs: Every deb of the base.
        suite: For example ``bookworm``.
        created: RFC 3339; a moment at which the debs were current.
        store: Keeps debs and layer.
        site: Mirrors, snapshot archive.
        http: As ``fetch_debs``.
        observer: Told of progress.

    Raises:
        LockError: ``deb-superseded``, ``artifact-changed``.
        BuildError: ``bootstrap-failed``, ``disk-full``.
        NotJudgedError: ``mmdebstrap-missing``, ``bootstrap-not-permitted``, ``index-unreachable``.
    """
    repositories = mmdebstrap_repositories(suite)
    sources = sources_text(without_host_options(repositories))
    ordered = _in_name_order(debs)
    key = bootstrap_key(ordered, suite, sources)
    with store.lock(f"bootstrap {suite}", observer=observer):
        layer = store.layer(key)
        if layer is None:
            files = fetch_debs(
                ordered, repositories, created=created, store=store, site=site, http=http, observer=observer
            )
            observer.stage("base", f"bootstrap {suite}")
            with store.new_layer(key) as sink:
                bootstrap_rootfs(files, suite, sources, sink)
            layer = sink.layer
        if layer is None:
            raise BuildError("the base's layer was not kept", code="store-damaged", where=str(store.root))
        store.put_record(_RECORD, layer.diff_id, {"key": key})
        return layer


def bootstrap_layer(
    base: BootstrapBaseLock,
    *,
    store: Store,
    site: SiteConfig,
    http: HttpClient | None = None,
    observer: Observer,
) -> StoredLayer:
    """The one layer of a locked base, out of the store or made from its debs.

    Raises:
        BuildError: ``bootstrap-differs`` when the debs give other bytes than the lock says; and as
            ``make_bootstrap_layer``.
    """
    record = store.record(_RECORD, base.diff_id)
    layer = store.layer(str(record["key"])) if record else None
    if layer is None:
        layer = make_bootstrap_layer(
            base.debs, base.suite, created=base.created, store=store, site=site, http=http, observer=observer
        )
    if layer.diff_id != base.diff_id:
        raise BuildError(
            "the locked packages give another base here than where the lock was made",
            code="bootstrap-differs",
            where=f"bootstrap {base.suite}",
            detail=f"locked: {base.diff_id}\nmade:   {layer.diff_id}",
            do="Run `stackbuild lock` again, and report the versions of mmdebstrap on both machines.",
        )
    return layer


def ensure_bootstrap_base(
    base: BootstrapBaseLock,
    platform: str,
    *,
    engine: Engine,
    store: Store,
    site: SiteConfig,
    http: HttpClient | None = None,
    observer: Observer,
) -> ImageInfo:
    """Have the engine hold a bootstrapped base, made and loaded where it is missing.

    Raises:
        As ``bootstrap_layer``; NotJudgedError: ``image-load-failed``, ``engine-died``.
    """
    config = _image_config(base, platform)
    tag = f"{_REPOSITORY}:{base.suite}-{short_hex(base.diff_id)}"
    image = engine.image(digest_of(config)) or engine.image(tag)
    if image is not None and image.diff_ids == (base.diff_id,):
        return image
    layer = bootstrap_layer(base, store=store, site=site, http=http, observer=observer)
    observer.stage("base", f"load {tag}")
    engine.load(docker_archive(config, [(layer.diff_id, layer.path)], [tag]))
    image = engine.image(tag)
    if image is None or image.diff_ids != (base.diff_id,):
        raise NotJudgedError(
            "the engine does not hold the base that it was given",
            code="image-load-failed",
            where=tag,
            do="See the engine's log; then run the same command again.",
        )
    return image


def _image_config(base: BootstrapBaseLock, platform: str) -> bytes:
    document = {
        **bootstrap_config(base, platform),
        "history": [{"created": base.created, "created_by": f"stackbuild bootstrap {base.suite}"}],
        "rootfs": {"type": "layers", "diff_ids": [base.diff_id]},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def _in_name_order(debs: Sequence[LockedDeb]) -> list[LockedDeb]:
    return sorted(debs, key=lambda deb: (deb.name, deb.architecture))
