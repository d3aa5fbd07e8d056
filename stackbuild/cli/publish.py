"""``stackbuild publish``: judge an image where others will find it, then let them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.publish.request import PublishRequest, Source
    from stackbuild.publish.sources import Sources
    from stackbuild.registry.client import RegistryClient


@click.command("publish")
@click.argument("images", nargs=-1, required=True, metavar="IMAGE|STACK|REPOSITORY@DIGEST...")
@click.argument("reference", metavar="REPOSITORY[:TAG]")
@click.option(
    "--require",
    metavar="sm_80,…|cpu",
    help="Judge by reports that are attached: one fresh, complete and passed for each of these GPUs.",
)
@click.option(
    "--max-age",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="With --require: how old a report may be.",
)
@click.option("--stage", is_flag=True, help="Push and attach the SBOM for other jobs to judge; move no tag.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="OS/ARCH",
    help="What the index must have; may be repeated.",
)
@click.option("--gpus", metavar="all|none|N|device=ID[,ID]", help="GPUs to reserve where it is judged here.")
@click.option("--fresh", is_flag=True, help="Judge again what was published before.")
@click.option("--sign-key", metavar="KEY", help="Sign with cosign and this key before any tag moves.")
@click.option("--strict", is_flag=True, help="A WARN fails.")
@output_options
def command(
    images: tuple[str, ...],
    reference: str,
    require: str | None,
    max_age: float,
    stage: bool,
    platforms: tuple[str, ...],
    gpus: str | None,
    fresh: bool,
    sign_key: str | None,
    strict: bool,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Push an image, judge what the registry gives back, attach SBOM and reports, and then move the tags.

    Without a TAG these are the image's version and latest. Nothing is tagged when a gate fails or was not
    judged. A STACK whose inputs were published before is only tagged. Several images, one for each platform,
    become one index. Exit codes: 0 published, 1 a gate failed, 5 could not be judged.
    """
    import os

    from stackbuild.cli.context import project
    from stackbuild.cli.output import plain, write_result
    from stackbuild.cli.progress import observed
    from stackbuild.findings import exit_code_of
    from stackbuild.publish.judging import Verifying
    from stackbuild.publish.layer_cache import LayerCache
    from stackbuild.publish.publisher import Publisher
    from stackbuild.publish.scanning import Scanning
    from stackbuild.publish.sources import Sources
    from stackbuild.registry.client import RegistryClient
    from stackbuild.registry.writer import RegistryWriter
    from stackbuild.reports.console import render_console
    from stackbuild.reports.json_report import render_json
    from stackbuild.verification.gpus import parse_gpus

    here = project()
    repository, tags = _destination(reference)
    needed = _required(require)
    selected = parse_gpus(gpus) if gpus is not None else None
    with (
        here.engine() as engine,
        observed(quiet=quiet) as observer,
        # What is written is the registry itself; its mirror may be behind it.
        RegistryClient(ca_bundle=here.site.ca_bundle) as client,
        RegistryClient(here.site.registries, ca_bundle=here.site.ca_bundle) as mirrored,
    ):
        sources = Sources(engine, here.store, here.site, os.environ, here.stack, observer)
        again = fresh or stage or strict or bool(needed)
        request, path = _request(here, sources, client, images, repository, tags, platforms, again=again)
        from dataclasses import replace
        from datetime import timedelta

        request = replace(
            request,
            require=needed,
            max_age=timedelta(hours=max_age),
            strict=strict,
            stage_only=stage,
            sign_key=sign_key,
        )
        publisher = Publisher(
            engine=engine,
            store=here.store,
            writer=RegistryWriter(client, observer),
            sources=mirrored,
            judges=lambda pulled: [
                Scanning(here.site, here.store, path, from_registry=engine.info().containerd_store),
                Verifying(engine, here.store, sources.target(path, pulled), here.site.policy, selected),
            ],
            observer=observer,
            layer_cache=LayerCache(client, here.site.layer_cache) if here.site.layer_cache else None,
        )
        report = publisher.publish(request)
    if format_ == "json":
        write_result(render_json(report), output)
    else:
        import shutil
        import sys

        colour = output is None and not plain(sys.stdout)
        width = shutil.get_terminal_size().columns
        write_result(render_console(report, colour=colour, width=width, verbose=verbose), output)
    code = int(exit_code_of(report.findings, strict=strict))
    click.get_current_context().exit(code or (0 if report.outcome != "refused" else 5))


def _request(
    here: Project,
    sources: Sources,
    client: RegistryClient,
    images: tuple[str, ...],
    repository: str,
    tags: tuple[str, ...],
    platforms: tuple[str, ...],
    *,
    again: bool,
) -> tuple[PublishRequest, Path | None]:
    """What to publish, and the spec when it is one stack."""
    from stackbuild.errors import SpecError
    from stackbuild.publish.request import PublishRequest
    from stackbuild.spec.load import load_spec

    found: list[Source] = []
    wanted = platforms
    path = None
    for name in images:
        if "@sha256:" in name:
            found.append(_staged(name, repository))
            continue
        try:
            spec_path = None if here.names_image(name) else here.stack(name)
        except SpecError as error:
            if error.code != "spec-not-found" or name.endswith((".yaml", ".yml")):
                raise
            spec_path = None
        if spec_path is None:
            found.append(sources.of_image(name))
            continue
        known = () if again or len(images) > 1 else sources.published(spec_path, client, repository)
        found += known or [sources.of_stack(spec_path)]
        wanted = platforms or tuple(load_spec(spec_path).spec.platforms)
        path = spec_path if len(images) == 1 else None
    return PublishRequest(tuple(found), repository, tags, wanted), path


def _staged(name: str, repository: str) -> Source:
    from stackbuild.errors import UsageError
    from stackbuild.publish.request import Source

    there, _, digest = name.partition("@")
    if there.rpartition("/")[2].count(":"):
        there = there.rpartition(":")[0]
    if there != repository:
        raise UsageError(
            f"{name} is in another repository than {repository}.",
            code="another-repository",
            do="Stage it in the repository that it is published to.",
        )
    return Source(digest=digest)


def _destination(reference: str) -> tuple[str, tuple[str, ...]]:
    """Repository and tags of what was named."""
    from stackbuild.annotate.image_reference import split_reference
    from stackbuild.errors import UsageError

    repository, tag, digest = split_reference(reference)
    if digest:
        raise UsageError(
            "An image is published under a tag.",
            code="tag-needed",
            where=reference,
            do="Name REPOSITORY[:TAG].",
        )
    return repository, () if repository == reference else (tag,)


def _required(text: str | None) -> tuple[str, ...]:
    """The GPUs of --require."""
    from stackbuild.errors import UsageError
    from stackbuild.publish.attachments import architecture_of
    from stackbuild.publish.judging import CPU

    found = []
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name = CPU if part.strip().lower() == CPU else architecture_of(part)
        if name is None:
            raise UsageError(
                f"{part.strip()!r} is no compute capability.",
                code="bad-compute-capability",
                do="Write sm_80,sm_90 (or 8.0,9.0), or cpu.",
            )
        found.append(name)
    return tuple(dict.fromkeys(found))
