"""``stackbuild sbom``: the CycloneDX document of a stack or of its image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.lock.model import Lock
    from stackbuild.progress import Observer
    from stackbuild.spec.load import LoadedSpec
    from stackbuild.spec.model import Platform


@click.command("sbom")
@click.argument("target", metavar="STACK|IMAGE")
@click.option("--platform", metavar="OS/ARCH", help="Of a stack. Default: the first of its platforms.")
@output_options(formats=("json",))
def command(
    target: str,
    platform: str | None,
    format_: str,  # noqa: ARG001 - there is one
    output: Path | None,
    quiet: bool,
    verbose: bool,  # noqa: ARG001 - the group reads it
) -> None:
    """Write the CycloneDX 1.6 SBOM of a STACK as it is locked, or of an IMAGE built from one.

    An image's SBOM comes from the lock it was built from, so that lock must be in the folder's stacks.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.output import write_result
    from stackbuild.cli.progress import observed
    from stackbuild.errors import SpecError

    here = project()
    is_image = (":" in target or "@" in target) and not target.endswith((".yaml", ".yml"))
    try:
        spec_path = None if is_image else here.stack(target)
    except SpecError as error:
        if error.code != "spec-not-found" or target.endswith((".yaml", ".yml")):
            raise
        spec_path = None
    with observed(quiet=quiet) as observer:
        document = (
            _of_stack(here, spec_path, platform, observer) if spec_path else _of_image(here, target, observer)
        )
    write_result(document, output)


def _of_stack(here: Project, spec_path: Path, wanted: str | None, observer: Observer) -> bytes:
    from stackbuild.errors import UsageError
    from stackbuild.lock.file import read_lock, require_current
    from stackbuild.lock.path import lock_path
    from stackbuild.sbom.stack import stack_sbom
    from stackbuild.spec.load import load_spec

    stack = load_spec(spec_path)
    if stack.spec.external is not None:
        raise UsageError(
            "An external stack has no lock, so what is in it is not known here.",
            code="external-stack",
            where=stack.spec.name,
        )
    path = lock_path(spec_path)
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


def _of_image(here: Project, reference: str, observer: Observer) -> bytes:
    from stackbuild.errors import NotJudgedError
    from stackbuild.publish.inspect import inspect_image
    from stackbuild.sbom.stack import stack_sbom
    from stackbuild.verification.target import platform_of

    with here.engine() as engine:
        image = engine.image(reference)
        containerd_store = engine.info().containerd_store
    if image is None:
        raise NotJudgedError(
            "The engine does not have this image.",
            code="image-missing",
            where=reference,
            do="Build it, or pull it first.",
        )
    inspection = inspect_image(reference, image.labels, image.diff_ids)
    if inspection.pins is None:
        raise NotJudgedError(
            f"It is {inspection.statement}; its SBOM would be incomplete.",
            code="not-the-locked-image",
            where=reference,
            do="Write the SBOM of the image below it, or of a stack.",
        )
    platform = platform_of(image)
    stack, lock = _locked(here, inspection.pins.stack, inspection.pins.lock_sha256, platform)
    return stack_sbom(
        stack,
        lock,
        platform,
        site=here.site,
        store=here.store,
        observer=observer,
        # With the containerd store the engine's id is a manifest's digest, not the configuration's.
        config_digest=None if containerd_store else image.id,
    )


def _locked(here: Project, name: str, lock_sha256: str, platform: Platform) -> tuple[LoadedSpec, Lock]:
    """The stack and lock an image was built from."""
    from stackbuild.errors import LockError
    from stackbuild.lock.file import lock_sha256 as sha256_of
    from stackbuild.lock.file import read_lock
    from stackbuild.lock.path import lock_path
    from stackbuild.spec.load import load_spec

    spec_path = here.stack(name)
    path = lock_path(spec_path)
    lock = read_lock(path)
    if sha256_of(lock) != lock_sha256 or platform not in lock.platforms:
        raise LockError(
            f"The image was built from another lock (sha256:{lock_sha256}).",
            code="another-lock",
            where=str(path),
            do="Check out the revision it was built from, or build the image again.",
        )
    return load_spec(spec_path), lock
