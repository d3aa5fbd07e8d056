"""What does not come out the same twice, asked once when a lock is made (DESIGN §3.2).

The layers are made as a build makes them, so the build that follows finds them in the store. The debs
are installed a second time and refused when they differ; byte-code that differs is named in the lock and
left out of the image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from stackbuild.annotate.pin_list import pin_list
from stackbuild.build.base import Base
from stackbuild.build.inputs import LockedInputs
from stackbuild.build.interface import BuildRequest
from stackbuild.build.interim import InterimImages
from stackbuild.build.layer_order import LayerOrder
from stackbuild.build.layer_run import LayerRun
from stackbuild.engine.docker_engine import Engine
from stackbuild.layers.bytecode import BytecodeMaker, unstable_bytecode
from stackbuild.layers.debs import DebsMaker
from stackbuild.layers.debs_stability import require_stable_debs
from stackbuild.layers.interface import Layer, Maker
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock
from stackbuild.progress import Observer
from stackbuild.render.image_config import base_run_config
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import ImageSpec, Platform, StackSpec
from stackbuild.store.store import Store

# Kinds of records: what was found for a maker's key holds for ever.
_STABLE_DEBS = "stable-debs"
_BYTECODE = "unstable-bytecode"


@dataclass(frozen=True)
class Stability:
    """Byte-code files that differ between two runs, and sources that do not compile; paths without leading slash."""

    bytecode_left_out: tuple[str, ...] = ()
    bytecode_failed: tuple[str, ...] = ()


def measure_stability(
    spec: StackSpec,
    folder: Path,
    lock: Lock,
    platform: Platform,
    *,
    engine: Engine,
    store: Store,
    site: SiteConfig,
    observer: Observer,
) -> Stability:
    """Make the layers of a platform and find what differs the second time.

    Args:
        spec: The spec.
        folder: The folder that the spec's paths are relative to.
        lock: The lock so far; what it says of byte-code is not looked at.
        platform: The platform.
        engine: Runs containers.
        store: Keeps the layers.
        site: Mirrors.
        observer: Told what takes time.

    Raises:
        LockError: ``deb-not-reproducible``, ``deb-superseded``, ``wheel-not-found``, ``artifact-changed``.
        BuildError: A maker fails: ``deb-install-failed``, ``file-conflict``, ``bytecode-failed``, ``disk-full``.
        NotJudgedError: The engine, an index or a repository is not there.
    """
    plain = lock.platforms[platform].model_copy(update={"bytecode_left_out": (), "bytecode_failed": ()})
    request = BuildRequest(
        # The spec's own files and user are no input of the lock; they may not even be there yet.
        spec=spec.model_copy(update={"files": (), "image": ImageSpec()}),
        folder=folder,
        lock=lock.model_copy(update={"platforms": {**lock.platforms, platform: plain}}),
        platform=platform,
        created=plain.created,
        pins=pin_list(spec, plain, "", lock_sha256=lock_sha256(lock)),
    )
    base = Base(plain.base, platform, engine=engine, store=store, site=site, observer=observer)
    inputs = LockedInputs(request, base, engine=engine, store=store, site=site, observer=observer)
    run = _StabilityRun(store, observer, base.tree)
    architecture = platform.partition("/")[2]
    base_tars = base.tars if engine.info().containerd_store else None
    present = engine.layer_chains()
    with InterimImages(engine, base_run_config(plain), architecture, present, base_tars) as interim:
        LayerOrder(request, base, inputs, run, interim, engine).make()
    return Stability(tuple(sorted(run.unstable)), tuple(sorted(run.failed)))


@dataclass
class _StabilityRun(LayerRun):
    """A run that asks of each layer whether it would come out the same; byte-code makes no layer here."""

    unstable: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def add(self, maker: Maker, *, ready: Callable[[], Maker] | None = None) -> Layer | None:
        if isinstance(maker, BytecodeMaker):
            self._compare_bytecode(maker, ready)
            return None
        below = self.tree() if isinstance(maker, DebsMaker) else None
        layer = super().add(maker, ready=ready)
        if isinstance(maker, DebsMaker) and layer is not None and below is not None:
            key = maker.key()
            if self.store.record(_STABLE_DEBS, key) is None:
                self.observer.stage("debs", "install them a second time and compare")
                made = ready() if ready is not None else maker
                assert isinstance(made, DebsMaker)
                require_stable_debs(made, below, layer.path)
                self.store.put_record(_STABLE_DEBS, key, {})
        return layer

    def _compare_bytecode(self, maker: BytecodeMaker, ready: Callable[[], Maker] | None) -> None:
        key = maker.key()
        known = self.store.record(_BYTECODE, key)
        if known is None:
            self.observer.stage("byte-code", f"compile {maker.group} twice and compare")
            made = ready() if ready is not None else maker
            assert isinstance(made, BytecodeMaker)
            unstable, failed = unstable_bytecode(made)
            known = {"unstable": list(unstable), "failed": list(failed)}
            self.store.put_record(_BYTECODE, key, known)
        self.unstable.update(known["unstable"])
        self.failed.update(known["failed"])
