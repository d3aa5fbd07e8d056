"""``stackbuild sbom``: the CycloneDX document of a stack, or of any image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options
from stackbuild.collection import collection_paused

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.progress import Observer
    from stackbuild.spec.load import LoadedSpec

_DEFAULT_PLATFORM = "linux/amd64"


@click.command("sbom")
@click.argument("target", metavar="STACK|IMAGE|ARCHIVE|DIR")
@click.option(
    "--platform",
    metavar="OS/ARCH",
    help=f"Of a stack, by default its first; of an index, by default {_DEFAULT_PLATFORM}.",
)
@click.option("--scan", "scanned", is_flag=True, help="Read the image even where its lock is at hand.")
@click.option("--image", "wanted", default="", metavar="NAME", help="Which image of an archive with several.")
@click.option("--registry", is_flag=True, help="Ask the registry even when the engine has the image.")
@output_options(formats=("json",))
@collection_paused()
def command(
    target: str,
    platform: str | None,
    scanned: bool,
    wanted: str,
    registry: bool,
    format_: str,  # noqa: ARG001 - there is one
    output: Path | None,
    quiet: bool,
    verbose: bool,  # noqa: ARG001 - the group reads it
) -> None:
    """Write the CycloneDX 1.6 SBOM of a STACK as it is locked, or of any IMAGE, ARCHIVE or root file system.

    Where an image's lock is at hand the document comes from it: it names what was downloaded, by hash. Else,
    or with --scan, the image is read, not started: the document says what lies where, bundled libraries and
    GPU architectures among it, and what it cannot know.
    """
    from stackbuild.cli.output import write_result
    from stackbuild.cli.progress import observed
    from stackbuild.output_file import require_apart

    require_apart(target, output)
    with observed(quiet=quiet) as observer:
        document = _document(target, platform, observer, scanned=scanned, wanted=wanted, registry=registry)
    write_result(document, output)


def _document(
    target: str, platform: str | None, observer: Observer, *, scanned: bool, wanted: str, registry: bool
) -> bytes:
    from stackbuild.cli.context import project

    here = project()
    stack = _stack(here, target)
    if stack is not None and stack.spec.external is None and not scanned:
        return _of_stack(here, stack, platform, observer)
    reference = target
    if stack is not None:
        reference = stack.spec.external or f"{stack.spec.name}:latest"
    if not scanned and not registry:
        document = _of_locked_image(here, reference, observer)
        if document is not None:
            return document
    return _of_scan(here, reference, platform, observer, wanted=wanted, registry=registry)


def _stack(here: Project, target: str) -> LoadedSpec | None:
    """The stack of that name; None when it is an image or an archive that is meant."""
    from stackbuild.errors import SpecError
    from stackbuild.spec.load import load_spec

    is_spec = target.endswith((".yaml", ".yml"))
    if not is_spec and (":" in target or "@" in target or Path(target).exists()):
        return None
    try:
        path = here.stack(target)
    except SpecError as error:
        if error.code != "spec-not-found" or is_spec:
            raise
        return None
    return load_spec(path)


def _of_stack(here: Project, stack: LoadedSpec, wanted: str | None, observer: Observer) -> bytes:
    from stackbuild.errors import UsageError
    from stackbuild.lock.file import read_lock, require_current
    from stackbuild.lock.path import lock_path
    from stackbuild.sbom.stack import stack_sbom

    path = lock_path(stack.path)
    lock = read_lock(path)
    require_current(lock, stack.spec, stack.folder, path)
    platform = next((known for known in lock.platforms if wanted in (None, known)), None)
    if platform is None:
        raise UsageError(
            f"The stack is locked for {', '.join(lock.platforms)}, not for {wanted}.",
            code="platform-not-locked",
            where=stack.spec.name,
        )
    return stack_sbom(stack, lock, platform, site=here.site, store=here.store, observer=observer)


def _of_locked_image(here: Project, reference: str, observer: Observer) -> bytes | None:
    """The SBOM of an image of the engine whose lock is at hand; None for every other image."""
    from stackbuild.errors import NotJudgedError

    if Path(reference).exists():
        return None
    try:
        engine = here.engine()
    except NotJudgedError as error:
        if error.code != "engine-unreachable":
            raise
        return None
    with engine:
        return _of_engine_image(here, engine, reference, observer)


def _of_engine_image(here: Project, engine: Engine, reference: str, observer: Observer) -> bytes | None:
    from stackbuild.build.image_content import image_config_bytes
    from stackbuild.digests import digest_of
    from stackbuild.publish.lock_of_image import lock_of_image
    from stackbuild.sbom.stack import stack_sbom
    from stackbuild.scan.scan_engine import scan_engine_image
    from stackbuild.verification.target import platform_of

    image = engine.image(reference)
    if image is None:
        return None
    platform = platform_of(image)
    found = lock_of_image(image.labels, image.diff_ids, platform, here.stack)
    if found is None:
        return None
    stack, lock = found
    return stack_sbom(
        stack,
        lock,
        platform,
        site=here.site,
        store=here.store,
        observer=observer,
        config_digest=digest_of(image_config_bytes(engine, image, here.store)),
        image=lambda: scan_engine_image(engine, image.id, store=here.store, observer=observer),
    )


def _of_scan(
    here: Project, reference: str, platform: str | None, observer: Observer, *, wanted: str, registry: bool
) -> bytes:
    from stackbuild.sbom.kept import kept_scan_sbom
    from stackbuild.scan.open_source import open_source
    from stackbuild.scan.scan import scan_of
    from stackbuild.scan.scan_image import scan_image

    with open_source(
        reference,
        site=here.site,
        store=here.store,
        observer=observer,
        platform=platform or _DEFAULT_PLATFORM,
        wanted=wanted,
        registry=registry,
    ) as source:
        return kept_scan_sbom(scan_of(scan_image(source, observer, store=here.store)), here.store)
