"""Build one stack: nothing when nothing changed, one build of a stack at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from stackbuild.build.interface import Builder, BuildRequest, BuiltImage
from stackbuild.build.plan import choose_platform, created_at, plan_key
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.engine.naming import remove_nameless
from stackbuild.errors import NotJudgedError, UsageError
from stackbuild.layers.files import files_sha256
from stackbuild.lock.file import lock_sha256, require_current
from stackbuild.lock.model import Lock
from stackbuild.lock.path import lock_path
from stackbuild.progress import Observer
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform, StackSpec
from stackbuild.store.scratch import sweep_scratch
from stackbuild.store.store import Store

if TYPE_CHECKING:
    from stackbuild.annotate.pin_list import PinList

_BUILT = "built-image"  # kind of record

BuilderName = Literal["assemble", "dockerfile"]


@dataclass(frozen=True)
class BuildOptions:
    """How to build.

    Attributes:
        builder: Which of the two.
        fresh: Make every layer anew, whatever the store and the engine have.
        tags: The image's names, under which it is always built anew and not remembered; empty for
            STACK:VERSION and STACK:latest.
        platform: One that is locked; None for the engine's.
    """

    builder: BuilderName = "assemble"
    fresh: bool = False
    tags: tuple[str, ...] = ()
    platform: Platform | None = None


def require_own(spec: StackSpec) -> None:
    """Refuse what others built.

    Args:
        spec: The stack.

    Raises:
        UsageError: ``nothing-to-build``: an external stack.
    """
    if spec.external is not None:
        raise UsageError(
            "An external stack is built by others.",
            code="nothing-to-build",
            where=spec.name,
            do=f"Verify it: stackbuild verify {spec.name}.",
        )


def build_stack(
    stack: LoadedSpec,
    lock: Lock,
    *,
    engine: Engine,
    store: Store,
    site: SiteConfig,
    options: BuildOptions,
    environ: Mapping[str, str],
    observer: Observer,
) -> BuiltImage:
    """Build a stack's image for a platform, the engine's own unless another is asked for.

    Args:
        stack: The spec.
        lock: Its lock.
        engine: Gets the image.
        store: Keeps inputs, layers and records.
        site: Mirrors.
        options: How.
        environ: The process's environment, for SOURCE_DATE_EPOCH.
        observer: Told what takes time.

    Raises:
        LockError: ``lock-stale``, ``platform-not-locked``, or an input that is not what the lock says.
        UsageError: ``nothing-to-build``: an external stack.
        BuildError: A step failed.
        NotJudgedError: The engine, an index or a registry cannot be used; ``foreign-architecture``: the engine
            cannot run what the platform's layers are made with.
    """
    spec = stack.spec
    require_own(spec)
    require_current(lock, spec, stack.folder, lock_path(stack.path))
    platform = options.platform or choose_platform(spec, lock, engine.platform())
    created = created_at(lock, platform, environ)
    files = files_sha256(spec, stack.folder)
    key = plan_key(spec, lock, files, platform=platform, builder=options.builder, created=created)
    anew = options.fresh or bool(options.tags)
    if not anew and (known := _still_there(engine, store, key)) is not None:
        return known
    with store.lock(f"build-{spec.name}", observer=observer):
        # Another process may have built it while this one waited.
        if not anew and (known := _still_there(engine, store, key)) is not None:
            return known
        for name in (*engine.sweep(), *store.sweep(), *sweep_scratch()):
            observer.note(f"removed {name}, which a killed run had left")
        from stackbuild.annotate.pin_list import pin_list
        from stackbuild.annotate.tags import image_tags
        from stackbuild.build.foreign import require_runnable

        require_runnable(
            lock.platforms[platform], platform, engine=engine, store=store, site=site, observer=observer
        )
        others = sorted(set(lock.platforms) - {platform})
        if others and options.platform is None:
            observer.note(
                f"this builds {spec.name} for {platform}; for {', '.join(others)} build it on a machine of that platform"
            )
        pins = pin_list(spec, lock.platforms[platform], files, lock_sha256=lock_sha256(lock))
        tags = options.tags or image_tags(pins)
        before = {ref: found.id for ref in tags if (found := engine.image(ref)) is not None}
        request = BuildRequest(spec, stack.folder, lock, platform, created, pins, tags, options.fresh)
        try:
            built = _builder(options.builder, engine, store, site, observer).build(request)
            if not options.tags:
                store.put_record(_BUILT, key, asdict(built))
        except KeyboardInterrupt:
            _put_back(engine, tags, before, pins)
            raise
        remove_nameless(engine, set(before.values()) - {built.image_id})
        return built


def _builder(
    name: BuilderName, engine: Engine, store: Store, site: SiteConfig, observer: Observer
) -> Builder:
    # Imported here: a build with nothing to do needs neither.
    if name == "dockerfile":
        from stackbuild.build.dockerfile import DockerfileBuilder

        return DockerfileBuilder(engine, store, site, observer)
    from stackbuild.build.assemble import AssembleBuilder

    return AssembleBuilder(engine, store, site, observer)


def _still_there(engine: Engine, store: Store, key: str) -> BuiltImage | None:
    """What an earlier build with the same key made, when the engine still has it under all its names."""
    record = store.record(_BUILT, key)
    if record is None:
        return None
    built = _from_record(record)
    for ref in built.tags:
        image = engine.image(ref)
        if image is None or image.id != built.image_id:
            return None
    return built


def _put_back(engine: Engine, tags: Iterable[str], before: Mapping[str, str], pins: PinList) -> None:
    """Undo the naming of an image that was finished at the very moment of an interrupt."""
    for ref in tags:
        now = engine.image(ref)
        if now is None or now.id == before.get(ref) or not _stands_for(now, pins):
            continue
        if ref in before and engine.image(before[ref]) is not None:
            engine.tag(before[ref], ref)
        else:  # it was new, or the earlier image was removed meanwhile
            engine.remove_image(ref)
        remove_nameless(engine, [now.id])


def _stands_for(image: ImageInfo, pins: PinList) -> bool:
    """Whether an image is of these pins: somebody with another store may have moved a name meanwhile."""
    from stackbuild.annotate.labels import read_pins_label

    try:
        return read_pins_label(image.labels, image.id).pins == pins
    except NotJudgedError:  # it has none, or one of another version
        return False


def _from_record(record: Mapping[str, Any]) -> BuiltImage:
    reused = (*record["made"], *record["reused"])
    return BuiltImage(
        stack=record["stack"],
        builder=record["builder"],
        config_digest=record["config_digest"],
        image_id=record["image_id"],
        diff_ids=tuple(record["diff_ids"]),
        tags=tuple(record["tags"]),
        reused=reused,
        unchanged=True,
    )
