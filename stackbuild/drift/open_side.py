"""Finding what a person named as one side: an image, a lock, a stack's lock, or an SBOM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import cast

from stackbuild.drift.compare import image_side
from stackbuild.drift.lock_subject import lock_subject
from stackbuild.drift.sbom_subject import LARGEST, sbom_subject
from stackbuild.drift.subject import Subject
from stackbuild.errors import LockError, NotJudgedError, ScanError, SpecError
from stackbuild.lock.file import read_lock
from stackbuild.lock.path import lock_path
from stackbuild.progress import Observer
from stackbuild.scan.open_source import existing_path, open_source
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import SUFFIXES, load_spec
from stackbuild.spec.model import Platform
from stackbuild.store.store import Store

_LOCKS_WORD, _SBOMS_WORD = b'"spec-sha256"', b'"bomFormat"'
_LOCK = ".lock"
_IN_A_REFERENCE = frozenset("/:@")


@contextmanager
def open_side(
    target: str,
    *,
    site: SiteConfig,
    store: Store | None,
    observer: Observer,
    find_stack: Callable[[str], Path],
    platform: str = "linux/amd64",
    wanted: str = "",
    registry: bool = False,
) -> Iterator[Subject]:
    """Open one side.

    A file that begins with ``{`` is a lock or an SBOM, a spec stands for its stack; every other path is an image, as
    ``scan`` opens it. A
    word without ``/``, ``:`` and ``@`` is a stack, whose lock is meant (of an external stack its image); where
    there is no such stack it is an image.

    Args:
        target: What the person named.
        site: Mirrors of registries.
        store: Where tars of layers and what was found in them may be.
        observer: Told what is read.
        find_stack: The spec of a stack by its name.
        platform: Of an index or a lock, the platform to read.
        wanted: Which image of an archive that holds several.
        registry: True to ask the registry even when the engine has the image.

    Raises:
        StackbuildError: As reading locks, SBOMs and images does.
    """
    path = existing_path(target)
    if path is not None and path.is_file() and (path.suffix == _LOCK or _is_json(path)):
        yield _of_document(path, cast(Platform, platform))
        return
    if path is None and _suffix(target) == _LOCK:
        raise LockError(
            "there is no such lock",
            code="lock-missing",
            where=target,
            do="Check the path. An earlier lock comes from version control: git show HEAD~1:stacks/NAME.lock > old.lock",
        )
    no_stack: SpecError | None = None
    if _suffix(target) in SUFFIXES or (path is None and not _IN_A_REFERENCE & set(target)):
        try:
            spec_path = find_stack(target)
        except SpecError as error:
            if error.code != "spec-not-found" or _suffix(target) in SUFFIXES:
                raise
            no_stack = error
        else:
            if path is not None:
                observer.note(f"{target} is a spec: what is compared is its lock.")
            external = load_spec(spec_path).spec.external
            if external is None:
                yield lock_subject(read_lock(lock_path(spec_path)), cast(Platform, platform), name=target)
                return
            target = external
    with ExitStack() as closing:
        opened = open_source(
            target,
            site=site,
            store=store,
            observer=observer,
            platform=platform,
            wanted=wanted,
            registry=registry,
        )
        try:
            source = closing.enter_context(opened)
        except (LockError, NotJudgedError, ScanError) as error:
            if no_stack is not None:
                error.do = (
                    f"No stack is called {target} either. {no_stack.do} If an image is meant: {error.do}"
                )
            raise
        yield image_side(source, store=store, observer=observer)


def _suffix(target: str) -> str:
    """The ending of a name that can be no image's: a tag may end in ``.lock``, too."""
    return "" if ":" in target or "@" in target else PurePath(target).suffix


def _is_json(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"


def _of_document(path: Path, platform: Platform) -> Subject:
    if path.suffix == _LOCK:
        return lock_subject(read_lock(path), platform, name=str(path))
    with path.open("rb") as stream:
        data = stream.read(LARGEST + 1)
    # Told apart by their words, not by reading them: whichever it is says itself what is wrong with it.
    if _LOCKS_WORD in data and _SBOMS_WORD not in data:
        return lock_subject(read_lock(path), platform, name=str(path))
    return sbom_subject(data, str(path))
