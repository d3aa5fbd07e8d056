"""The default builder: layers from the store or made, and an image loaded from configuration and new layers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from stackbuild.annotate.labels import image_labels
from stackbuild.build.base import Base
from stackbuild.build.image_content import remember_config
from stackbuild.build.inputs import LockedInputs
from stackbuild.build.interface import BuildRequest, BuiltImage
from stackbuild.build.interim import InterimImages, LayerTar
from stackbuild.build.layer_order import LayerOrder
from stackbuild.build.layer_run import LayerRun
from stackbuild.digests import digest_of
from stackbuild.engine.archive import docker_archive
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import NotJudgedError
from stackbuild.layers.chain import present_layers
from stackbuild.progress import Observer
from stackbuild.render.image_config import ConfigLayer, base_run_config, image_config
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store


class AssembleBuilder:
    """Builds by assembling layer tars (DESIGN §3.1).

    Args:
        engine: Gets the image.
        store: Keeps the layers.
        site: Mirrors.
        observer: Told what takes time.
    """

    name = "assemble"

    def __init__(self, engine: Engine, store: Store, site: SiteConfig, observer: Observer) -> None:
        self._engine = engine
        self._store = store
        self._site = site
        self._observer = observer

    def build(self, request: BuildRequest) -> BuiltImage:
        """Build and tag the image.

        Raises:
            BuildError: A maker failed.
            LockError: An input is not what the lock says, or is gone.
            NotJudgedError: The engine, an index or a registry cannot be used.
        """
        lock = request.platform_lock
        base = Base(
            lock.base,
            request.platform,
            engine=self._engine,
            store=self._store,
            site=self._site,
            observer=self._observer,
        )
        inputs = LockedInputs(
            request, base, engine=self._engine, store=self._store, site=self._site, observer=self._observer
        )
        run = LayerRun(self._store, self._observer, base.tree, fresh=request.fresh)
        present = self._engine.layer_chains()
        architecture = request.platform.partition("/")[2]
        began = time.monotonic()
        base_tars = base.tars if self._engine.info().containerd_store else None
        with InterimImages(self._engine, base_run_config(lock), architecture, present, base_tars) as interim:
            order = LayerOrder(request, base, inputs, run, interim, self._engine)
            order.make()
            made = time.monotonic()
            interim.finish_early()
            image = self._load(request, base, run, order.tars())
        seconds = {
            **run.seconds,
            "layers": round(made - began, 3),
            "load": round(time.monotonic() - made, 3),
        }
        return BuiltImage(
            stack=request.spec.name,
            builder=self.name,
            config_digest=image[0],
            image_id=image[1].id,
            diff_ids=image[1].diff_ids,
            tags=image[2],
            made=tuple(run.made),
            reused=tuple(run.reused),
            seconds=seconds,
        )

    def _load(
        self, request: BuildRequest, base: Base, run: LayerRun, tars: Sequence[LayerTar]
    ) -> tuple[str, ImageInfo, tuple[str, ...]]:
        diff_ids = tuple(diff_id for diff_id, _ in tars)
        layers = [ConfigLayer(diff_id, base.title) for diff_id in base.diff_ids]
        layers += [ConfigLayer(layer.diff_id, layer.created_by) for layer in run.layers]
        labels = image_labels(request.spec, request.pins, diff_ids, created=request.created)
        config = image_config(
            request.spec,
            request.platform_lock,
            platform=request.platform,
            layers=layers,
            labels=labels,
            created=request.created,
        )
        tags = request.tags
        self._observer.stage("load", tags[0])
        self._send(config, base, tars, tags)
        loaded = self._engine.image(tags[0])
        if loaded is None or loaded.diff_ids != diff_ids:
            raise NotJudgedError(
                "The engine does not hold the image that it was given.",
                code="image-load-failed",
                where=tags[0],
                do="See the engine's log; then run the same command again.",
            )
        if not labels.items() <= loaded.labels.items():  # the base has labels too
            # A store's lock keeps its own builds apart, not those of other users of the engine.
            raise NotJudgedError(
                "Another build, with a store of its own, gave the image's name to its own image meanwhile.",
                code="name-taken",
                where=tags[0],
                do="Run the same command again; let one store and one SOURCE_DATE_EPOCH build a stack on one engine.",
            )
        remember_config(loaded.id, config, self._store)
        return digest_of(config), loaded, tags

    def _send(self, config: bytes, base: Base, tars: Sequence[LayerTar], tags: Sequence[str]) -> None:
        """Load the image with the layers that the engine has not; with all of them where it insists."""
        wanted = [diff_id for diff_id, _ in tars]
        if not self._engine.info().containerd_store:
            have = present_layers(wanted, self._engine.layer_chains())
            if have < len(base.diff_ids):
                base.image()
            # Another process may remove an image whose layers were counted on: then send all of ours.
            for count in (max(have, len(base.diff_ids)), len(base.diff_ids)):
                new = [
                    (diff_id, None if number < count else path) for number, (diff_id, path) in enumerate(tars)
                ]
                if self._loads(docker_archive(config, new, tags)):
                    return
        of_base = base.tars()
        whole = [(diff_id, of_base.get(diff_id, path)) for diff_id, path in tars]
        self._engine.load(docker_archive(config, whole, tags))

    def _loads(self, archive: Iterator[bytes]) -> bool:
        try:
            self._engine.load(archive)
        except NotJudgedError as error:
            if error.code != "image-load-failed":
                raise
            return False
        return True
