"""``stackbuild build``: images from locks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from stackbuild.cli.options import output_options, stack_argument

if TYPE_CHECKING:
    from stackbuild.build.interface import BuiltImage
    from stackbuild.cli.context import Project
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.progress import Observer
    from stackbuild.spec.load import LoadedSpec


@dataclass(frozen=True)
class _Asked:
    """What the options ask of each stack."""

    builder: Literal["assemble", "dockerfile"]
    fresh: bool
    locked: bool
    verify: bool
    gpus: str | None
    strict: bool
    reports: Path
    verbose: bool


@click.command("build")
@stack_argument
@click.option("--all", "everything", is_flag=True, help="Build all stacks of the folder but external ones.")
@click.option(
    "--verify", is_flag=True, help="Verify the image, and write report (JSON, HTML), SBOM and pin list."
)
@click.option("--locked", is_flag=True, help="Never lock here: a missing or stale lock is an error.")
@click.option("--no-cache", "fresh", is_flag=True, help="Make every layer anew.")
@click.option(
    "--builder",
    type=click.Choice(["assemble", "dockerfile"]),
    default="assemble",
    show_default=True,
    help="How the image is made.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Stacks to build at a time."
)
@click.option("--gpus", metavar="all|none|N|device=ID[,ID]", help="With --verify: GPUs to reserve.")
@click.option("--strict", is_flag=True, help="With --verify: a WARN fails.")
@click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reports"),
    show_default=True,
    metavar="DIR",
    help="With --verify: where the reports go, one folder a stack.",
)
@output_options
def command(
    stacks: tuple[str, ...],
    everything: bool,
    jobs: int,
    format_: str,
    output: Path | None,
    quiet: bool,
    **asked: Any,
) -> None:
    """Build the images of stacks, and name them STACK:VERSION and STACK:latest.

    A lock that is missing or stale is made anew first. With nothing changed there is nothing to do.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import leading_exit_code

    if asked["gpus"] is not None:
        from stackbuild.verification.gpus import parse_gpus

        parse_gpus(asked["gpus"])  # a mistake is told now, not once the image is built
    here = project()
    specs = here.stacks(stacks, everything=everything)
    if everything:
        specs = [path for path in specs if not _is_external(path, quiet=quiet)]
    if jobs > 1 and len(specs) > 1:
        from stackbuild.cli.build_jobs import build_in_processes

        rows = build_in_processes(specs, jobs, quiet=quiet, **asked)
    else:
        rows = _build_all(here, specs, _Asked(**asked), quiet=quiet) if specs else []
    if format_ == "json":
        write_result(json_text({"stacks": rows}), output)
    else:
        write_result("".join(_lines(row) for row in rows), output)
    click.get_current_context().exit(int(leading_exit_code(row["exit-code"] for row in rows)))


def _is_external(path: Path, *, quiet: bool) -> bool:
    """Whether others built the stack's image. A spec that is not valid is told where it is built."""
    from stackbuild.cli.output import talk
    from stackbuild.errors import SpecError
    from stackbuild.spec.load import load_spec

    try:
        external = load_spec(path).spec.external is not None
    except SpecError:
        return False
    if external and not quiet:
        talk(f"{path.stem}: not built, since others built its image")
    return external


def _build_all(here: Project, specs: list[Path], asked: _Asked, *, quiet: bool) -> list[dict[str, Any]]:
    from stackbuild.cli.progress import observed

    rows = []
    with here.engine() as engine:
        for path in specs:
            with observed(quiet=quiet) as observer:
                rows.append(_build_one(here, engine, path, asked, observer, alone=len(specs) == 1))
    return rows


def _build_one(
    here: Project, engine: Engine, path: Path, asked: _Asked, observer: Observer, *, alone: bool
) -> dict[str, Any]:
    """One stack's row. A failure ends the command when the stack is alone; else the others go on."""
    import os
    import time

    from stackbuild.build.current_lock import current_lock
    from stackbuild.build.stack import BuildOptions, build_stack, require_own
    from stackbuild.cli.output import talk
    from stackbuild.errors import InterruptedRunError, StackbuildError
    from stackbuild.spec.load import load_spec

    began = time.monotonic()
    try:
        stack = load_spec(path)
        require_own(stack.spec)
        lock = current_lock(
            stack, engine=engine, store=here.store, site=here.site, locked=asked.locked, observer=observer
        )
        built = build_stack(
            stack,
            lock,
            engine=engine,
            store=here.store,
            site=here.site,
            options=BuildOptions(asked.builder, asked.fresh),
            environ=os.environ,
            observer=observer,
        )
        row = _row(built, time.monotonic() - began)
        if asked.verify:
            row |= _verified(here, engine, stack, built, asked, observer)
    except InterruptedRunError:
        raise
    except StackbuildError as error:
        if alone:
            raise
        talk(f"{path.stem}: {error}\n[{error.code}]")
        return {"stack": path.stem, "error": error.code, "exit-code": int(error.exit_code)}
    return row


def _row(built: BuiltImage, seconds: float) -> dict[str, Any]:
    return {
        "stack": built.stack,
        "builder": built.builder,
        "config-digest": built.config_digest,
        "image-id": built.image_id,
        "diff-ids": list(built.diff_ids),
        "tags": list(built.tags),
        "made": list(built.made),
        "reused": list(built.reused),
        "unchanged": built.unchanged,
        "seconds": {**built.seconds, "total": round(seconds, 3)},
        "exit-code": 0,
    }


def _verified(
    here: Project, engine: Engine, stack: LoadedSpec, built: BuiltImage, asked: _Asked, observer: Observer
) -> dict[str, Any]:
    """Verify the image and write report, SBOM and pin list; returns what the row says of it."""
    from dataclasses import replace

    from stackbuild.cli.output import write_files
    from stackbuild.findings import exit_code_of
    from stackbuild.reports.console import render_console
    from stackbuild.reports.html_report import render_html
    from stackbuild.reports.json_report import render_json
    from stackbuild.reports.summary import counts, leading_verdict
    from stackbuild.reports.verification import document_of_verification
    from stackbuild.verification.gpus import default_gpus, parse_gpus
    from stackbuild.verification.target import target_of_stack
    from stackbuild.verification.verify import VerifyOptions, verify_image

    # By its version: somebody else's build may have moved ``latest`` since.
    found = replace(target_of_stack(engine, stack.path), image=built.tags[0])
    gpus = parse_gpus(asked.gpus) if asked.gpus is not None else default_gpus(found.promise.device)
    options = VerifyOptions(gpus=gpus, fresh=asked.fresh)
    report = verify_image(engine, found.image, found.promise, options, observer, store=here.store)
    if found.waivers or here.site.policy.severities:
        from datetime import UTC, datetime

        from stackbuild.verification.acceptance import with_acceptance

        report = with_acceptance(report, found.waivers, here.site.policy, datetime.now(UTC).date())
    folder = asked.reports / stack.spec.name
    documents = {
        **_documents(here, engine, stack, built, observer),
        "report.json": render_json(report),
        "report.html": render_html(document_of_verification(report)),
    }
    write_files(folder, {name: text.encode() for name, text in documents.items()})
    return {
        "verification": {
            "verdict": str(leading_verdict(report.findings)),
            "summary": counts(report.findings),
            "complete": report.complete,
            "table": render_console(report, colour=False, width=100, verbose=asked.verbose),
        },
        "reports": str(folder),
        "exit-code": int(exit_code_of(report.findings, strict=asked.strict)),
    }


def _documents(
    here: Project, engine: Engine, stack: LoadedSpec, built: BuiltImage, observer: Observer
) -> dict[str, str]:
    """SBOM and pin list of a built image, by file name; remembered, since neither changes with the same image."""
    kind = "image-documents"
    remembered = here.store.record(kind, built.config_digest)
    if remembered is not None:
        return remembered
    from stackbuild.annotate.labels import read_pins_label
    from stackbuild.cli.output import json_text
    from stackbuild.errors import NotJudgedError
    from stackbuild.lock.file import read_lock
    from stackbuild.lock.path import lock_path
    from stackbuild.sbom.stack import stack_sbom
    from stackbuild.scan.scan_engine import scan_engine_image
    from stackbuild.verification.target import platform_of

    image = engine.image(built.tags[0])
    if image is None:
        raise NotJudgedError("The image was removed meanwhile.", code="image-missing", where=built.tags[0])
    pins = read_pins_label(image.labels, built.tags[0]).pins
    sbom = stack_sbom(
        stack,
        read_lock(lock_path(stack.path)),
        platform_of(image),
        site=here.site,
        store=here.store,
        observer=observer,
        config_digest=built.config_digest,
        image=lambda: scan_engine_image(engine, built.image_id, store=here.store, observer=observer),
    )
    documents = {
        "sbom.json": sbom.decode(),
        "pins.json": json_text(pins.model_dump(mode="json", by_alias=True, exclude_none=True)),
    }
    here.store.put_record(kind, built.config_digest, documents)
    return documents


def _lines(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['stack']}: failed [{row['error']}]\n"
    seconds = f"{row['seconds']['total']:.1f} s"
    if row["unchanged"]:
        what = f"nothing changed ({seconds})"
    elif row["made"]:
        what = f"built in {seconds}; made: {', '.join(row['made'])}"
    else:
        what = f"built in {seconds}; every layer was there"
    lines = [f"{row['stack']}: {what}", *(f"  {tag}" for tag in row["tags"]), f"  {row['config-digest']}"]
    if "verification" in row:
        lines += ["", row["verification"]["table"].rstrip(), f"  reports: {row['reports']}"]
    return "\n".join(lines) + "\n"
