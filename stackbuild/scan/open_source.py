"""Finding the image that a person named: a path, an image of the engine, or one in a registry."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from stackbuild.errors import LockError, NotJudgedError, ScanError, StackbuildError
from stackbuild.progress import Observer
from stackbuild.registry.documents import platform_name
from stackbuild.scan.sources.interface import ImageSource
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store

_SAVED = ("index.json", "manifest.json")
_ROOT_FOLDERS = ("etc", "usr")
# What a path says that names no file; a name that is too long for one may be an image's.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


@contextmanager
def open_source(
    target: str,
    *,
    site: SiteConfig,
    store: Store | None,
    observer: Observer,
    platform: str = "linux/amd64",
    wanted: str = "",
    registry: bool = False,
) -> Iterator[ImageSource]:
    """Open the source of an image.

    Args:
        target: A saved archive, an OCI layout or a root file system by its path; else an image's reference.
        site: Mirrors of registries.
        store: Where tars of layers may be.
        observer: Told where the image is read from.
        platform: Of an index, the platform to read.
        wanted: Which image of an archive that holds several.
        registry: True to ask the registry even when the engine has the image.

    Raises:
        NotJudgedError: ``image-missing`` and what asking engine and registry can give.
        ScanError: The archive is none (``archive-unknown``) or damaged.
    """
    platform = _as_indexes_name_it(platform)
    with ExitStack() as closing:
        path = existing_path(target)
        if path is not None:
            yield _of_path(path, closing, wanted, platform)
            return
        if target.startswith(("/", "./", "../")):
            raise _not_found(target, "there is no such file or folder")
        why_not: list[NotJudgedError] = []
        source = None if registry else _of_engine(target, closing, store, observer, why_not)
        if source is None:
            try:
                source = _of_registry(target, closing, site, platform, observer)
            except (LockError, NotJudgedError) as error:
                _tell_of_engine(error, why_not)
                raise
        yield source


def existing_path(target: str) -> Path | None:
    """The file or folder that a person named; None where there is none, so that they mean something else.

    Args:
        target: What they wrote.

    Raises:
        ScanError: It may not be looked at (``archive-not-found``), or can be read but once, as a pipe
            (``archive-unknown``).
    """
    if not target or "\0" in target:
        return None
    path = Path(target)
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise _not_found(target, f"it cannot be looked at: {error.strerror}") from error
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return path
    raise ScanError(
        "this is no file: a pipe or a device cannot be read where and as often as it must be",
        code="archive-unknown",
        where=target,
        do="Write what it gives to a file, and name that.",
    )


def _as_indexes_name_it(platform: str) -> str:
    """``linux/arm64/v8`` is ``linux/arm64`` here; see ``registry.documents.platform_name``."""
    system, _, rest = platform.partition("/")
    architecture, _, variant = rest.partition("/")
    return platform_name({"os": system, "architecture": architecture, "variant": variant}) or platform


def _not_found(target: str, what: str) -> ScanError:
    return ScanError(what, code="archive-not-found", where=target, do="Check the path.")


def _of_path(path: Path, closing: ExitStack, wanted: str, platform: str) -> ImageSource:
    from stackbuild.scan.sources.archive import ArchiveSource
    from stackbuild.scan.sources.folder import FolderSource

    saved = not path.is_dir() or any((path / name).is_file() for name in _SAVED)
    if not saved and any((path / name).is_dir() for name in _ROOT_FOLDERS):
        os_name, _, architecture = platform.partition("/")
        return FolderSource(path, {"os": os_name, "architecture": architecture})
    return closing.enter_context(ArchiveSource(path, wanted=wanted, platform=platform))


def _of_engine(
    reference: str,
    closing: ExitStack,
    store: Store | None,
    observer: Observer,
    why_not: list[NotJudgedError],
) -> ImageSource | None:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.scan.sources.engine import EngineSource

    try:
        engine = closing.enter_context(Engine.connect())
        return EngineSource(engine, reference, store=store)
    except NotJudgedError as error:
        # No engine is no obstacle, nor is one without the image: the registry can answer.
        if error.code not in ("engine-unreachable", "image-missing"):
            raise
        observer.note(f"{error.what} Asking its registry.")
        why_not.append(error)
        return None


def _tell_of_engine(error: StackbuildError, why_not: Sequence[NotJudgedError]) -> None:
    """Where neither the registry has the image, say what kept the engine from giving it: the note is long past."""
    for earlier in why_not:
        error.detail = "\n".join(part for part in (earlier.what, error.detail) if part)
        if earlier.code == "engine-unreachable":
            error.do = f"For an image of the engine: {earlier.do} For the registry: {error.do}"


def _of_registry(
    reference: str, closing: ExitStack, site: SiteConfig, platform: str, observer: Observer
) -> ImageSource:
    from stackbuild.registry.client import RegistryClient
    from stackbuild.scan.sources.registry import RegistrySource

    observer.stage("registry", reference)
    client = closing.enter_context(RegistryClient(site.registries, ca_bundle=site.ca_bundle))
    return RegistrySource(client, reference, platform=platform)
