"""What ``publish`` was pointed at: a stack, an image of the engine, or an image staged in the repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.pin_list import PinList
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.lock.file import lock_sha256, read_lock, require_current
from stackbuild.lock.model import Lock
from stackbuild.lock.path import lock_path
from stackbuild.progress import Observer
from stackbuild.publish.inputs import stack_inputs
from stackbuild.publish.lock_of_image import lock_of_image
from stackbuild.publish.remote_image import read_remote
from stackbuild.publish.request import Source
from stackbuild.publish.staging import inputs_tag
from stackbuild.registry.client import RegistryClient
from stackbuild.sbom.stack import stack_sbom
from stackbuild.scan.scan import Scan
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import LoadedSpec, load_spec
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store
from stackbuild.verification.target import VerifyTarget, platform_of, target_of_image, target_of_stack

_BUILDERS = ("assemble", "dockerfile")
_BUILT = "built-image"  # kind of record, of build/stack.py
_DOCUMENTS = "image-documents"  # kind of record, of build --verify


@dataclass(frozen=True)
class Sources:
    """Turns names into sources.

    Attributes:
        engine: Has images.
        store: Has wheels, and records of builds.
        site: Mirrors.
        environ: The process's environment, for SOURCE_DATE_EPOCH.
        find_stack: The spec's path of a stack's name.
        observer: Told of fetches.
    """

    engine: Engine
    store: Store
    site: SiteConfig
    environ: Mapping[str, str]
    find_stack: Callable[[str], Path]
    observer: Observer

    def of_stack(self, path: Path) -> Source:
        """The latest image of a stack, which must be of its lock.

        Raises:
            LockError: ``lock-stale``, ``another-lock``.
            NotJudgedError: ``image-missing``.
        """
        stack = load_spec(path)
        if stack.spec.external is not None:
            return self.of_image(stack.spec.external)
        lock = _current_lock(stack)
        name = f"{stack.spec.name}:latest"
        image = self._image(name, f"Run `stackbuild build {stack.spec.name}`.")
        platform = platform_of(image)
        pins = pins_that_hold(image.labels, image.diff_ids)
        if pins is None or _is_of_another(pins, lock, platform):
            raise LockError(
                "The image was built from another lock.",
                code="another-lock",
                where=name,
                do=f"Run `stackbuild build {stack.spec.name}` first.",
            )
        inputs = self._inputs_of(stack, lock, platform, image)
        return self._with_sbom(Source(image=name, inputs=inputs), stack, lock, platform)

    def of_image(self, name: str) -> Source:
        """An image of the engine; its SBOM comes from its lock where that is here, else from what is in the image.

        Raises:
            NotJudgedError: ``image-missing``.
        """
        image = self._image(name, "Build it, or pull it first.")
        platform = platform_of(image)
        found = lock_of_image(image.labels, image.diff_ids, platform, self.find_stack)
        if found is None:
            return Source(image=name, sbom=lambda digest: self._scanned_sbom(name, digest))
        stack, lock = found
        inputs = self._inputs_of(stack, lock, platform, image)
        return self._with_sbom(Source(image=name, inputs=inputs), stack, lock, platform)

    def published(self, path: Path, client: RegistryClient, repository: str) -> tuple[Source, ...]:
        """The images of exactly a stack's inputs that the repository has, one for each platform; else none.

        Nothing is fetched or built to know that.

        Raises:
            LockError: ``lock-stale``, ``lock-missing``.
        """
        stack = load_spec(path)
        if stack.spec.external is not None:
            return ()
        lock = _current_lock(stack)
        for builder in _BUILDERS:
            found = []
            for platform in stack.spec.platforms:
                if platform not in lock.platforms:
                    return ()
                inputs = stack_inputs(stack, lock, platform, self.environ, builder=builder)
                there = read_remote(client, repository, inputs_tag(inputs))
                if there is None or there.child(platform) is None:
                    break
                found.append(Source(digest=there.digest, published=True, inputs=inputs))
            if len(found) == len(stack.spec.platforms):
                return tuple(found)
        return ()

    def target(self, path: Path | None, reference: str) -> VerifyTarget:
        """What a pulled image promises: its stack's lock where that is known, else its own labels."""
        if path is None:
            return target_of_image(self.engine, reference)
        return replace(target_of_stack(self.engine, path), image=reference)

    def _inputs_of(self, stack: LoadedSpec, lock: Lock, platform: Platform, image: ImageInfo) -> str | None:
        """The hash of what decided an image; None where no record says that it came from just that."""
        for builder in _BUILDERS:
            inputs = stack_inputs(stack, lock, platform, self.environ, builder=builder)
            record = self.store.record(_BUILT, inputs)
            if record is not None and record.get("image_id") == image.id:
                return inputs
        return None

    def _with_sbom(self, source: Source, stack: LoadedSpec, lock: Lock, platform: Platform) -> Source:
        def write(config_digest: str) -> bytes:
            remembered = self.store.record(_DOCUMENTS, config_digest)
            if remembered is not None:
                return str(remembered["sbom.json"]).encode()
            return stack_sbom(
                stack,
                lock,
                platform,
                site=self.site,
                store=self.store,
                observer=self.observer,
                config_digest=config_digest,
                image=lambda: self._scan(source.image),
            )

        return replace(source, sbom=write)

    def _scanned_sbom(self, name: str, config_digest: str) -> bytes:
        from stackbuild.sbom.scanned import scan_sbom

        return scan_sbom(self._scan(name), config_digest=config_digest)

    def _scan(self, name: str) -> Scan:
        from stackbuild.scan.scan_engine import scan_engine_image

        return scan_engine_image(self.engine, name, store=self.store, observer=self.observer)

    def _image(self, name: str, do: str) -> ImageInfo:
        image = self.engine.image(name)
        if image is None:
            raise NotJudgedError(
                "The engine does not have this image.", code="image-missing", where=name, do=do
            )
        return image


def _current_lock(stack: LoadedSpec) -> Lock:
    path = lock_path(stack.path)
    lock = read_lock(path)
    require_current(lock, stack.spec, stack.folder, path)
    return lock


def _is_of_another(pins: PinList, lock: Lock, platform: Platform) -> bool:
    return pins.lock_sha256 != lock_sha256(lock) or platform not in lock.platforms
