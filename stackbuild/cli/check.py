"""``stackbuild check``: judge stacks and images, by themselves and on hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options, stack_argument
from stackbuild.reports.formats import CHECK_FORMATS

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.compat.check import Subject
    from stackbuild.compat.report import CheckReport
    from stackbuild.compat.subject import HostOffer
    from stackbuild.facts.tables import Facts
    from stackbuild.lock.model import Lock
    from stackbuild.spec.load import LoadedSpec


@click.command("check")
@stack_argument
@click.option("--all", "everything", is_flag=True, help="Every stack in stacks/.")
@click.option(
    "--host",
    "host_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="A host, as 'stackbuild host --format json' writes it; may be repeated.",
)
@click.option(
    "--fleet",
    "fleets",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="A file of hosts: JSON or YAML, nvidia-smi output, Kubernetes nodes, Slurm nodes.",
)
@click.option("--driver", metavar="VERSION", help="A host by its driver, for example 535.183.01.")
@click.option("--gpu", "gpus", multiple=True, metavar="NAME|CC", help="A GPU of that host; may be repeated.")
@click.option("--strict", is_flag=True, help="A WARN fails.")
@output_options(formats=CHECK_FORMATS)
def command(
    stacks: tuple[str, ...],
    everything: bool,
    host_files: tuple[Path, ...],
    fleets: tuple[Path, ...],
    driver: str | None,
    gpus: tuple[str, ...],
    strict: bool,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Judge stacks before anything is built, without Docker and without a GPU.

    A STACK is a spec by name or path, or an image reference. Without a host, the target of each spec is
    its host. Exit codes: 0 passed, 1 a gate failed, 3 a spec or lock is invalid, 5 could not be judged.
    """
    from datetime import UTC, datetime

    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, plain, talk, write_result
    from stackbuild.compat.check import check
    from stackbuild.facts.tables import Facts
    from stackbuild.findings import exit_code_of

    here = project()
    facts = Facts()
    today = datetime.now(UTC).date()
    hosts = _hosts(host_files, fleets, driver, gpus, facts)
    named = stacks if stacks or everything else tuple(str(path) for path in here.stacks((), everything=True))
    specs: dict[str, LoadedSpec] = {}
    asked = _subjects(here, named, everything, facts, specs)
    for loaded in () if quiet else specs.values():
        if loaded.name_note:
            talk(f"warning: {loaded.name_note}")
    if hosts:
        everyone = [subject for subjects, _ in asked for subject in subjects]
        shown = check(everyone, hosts, facts, here.site.policy, today)
    else:
        shown = _joined(
            [
                check(subjects, [target] if target is not None else [], facts, here.site.policy, today)
                for subjects, target in asked
            ]
        )
    if format_ == "json":
        write_result(json_text(shown.model_dump(mode="json", by_alias=True)), output)
    elif format_ == "github":
        write_result(_annotations(shown, specs), output)
    elif format_ in ("junit", "markdown"):
        from stackbuild.reports.document import document_of_check
        from stackbuild.reports.formats import render_document

        write_result(render_document(document_of_check(shown), format_, strict=strict), output)
    else:
        import shutil
        import sys

        from stackbuild.reports.matrix import render_matrix

        colour = output is None and not plain(sys.stdout)
        width = shutil.get_terminal_size().columns
        write_result(render_matrix(shown, colour=colour, width=width, verbose=verbose), output)
    click.get_current_context().exit(int(exit_code_of(shown.findings, strict=strict)))


def _joined(reports: list[CheckReport]) -> CheckReport:
    """Stacks that were each judged on the host of their own target: one report, without a column a host."""
    from stackbuild.compat.report import check_report

    return check_report(
        [stack for report in reports for stack in report.stacks],
        [],
        [cell for report in reports for cell in report.cells],
        complete=all(report.complete for report in reports),
    )


def _hosts(
    files: tuple[Path, ...], fleets: tuple[Path, ...], driver: str | None, gpus: tuple[str, ...], facts: Facts
) -> list[HostOffer]:
    from stackbuild.compat.offer import described_offer

    found: list[HostOffer] = []
    if files or fleets:
        from stackbuild.host.fleet import read_hosts
        from stackbuild.host.offer import host_offer

        for file in (*files, *fleets):
            found.extend(host_offer(host, facts) for host in read_hosts(file))
    if driver is not None or gpus:
        found.append(described_offer(driver, gpus, facts))
    return found


def _subjects(
    here: Project, names: tuple[str, ...], everything: bool, facts: Facts, specs: dict[str, LoadedSpec]
) -> list[tuple[tuple[Subject, ...], HostOffer | None]]:
    from dataclasses import replace

    from stackbuild.compat.offer import target_offer
    from stackbuild.compat.subjects import subject_of_stack
    from stackbuild.lock.path import lock_path
    from stackbuild.spec.load import load_specs

    found: list[tuple[tuple[Subject, ...], HostOffer | None]] = []
    paths = here.stacks((), everything=True) if everything else []
    for name in names:
        if here.names_image(name):
            found.append(((_image_subject(here, name, None, facts),), None))
        else:
            paths.append(here.stack(name))
    for loaded in load_specs(paths):
        path, spec = loaded.path, loaded.spec
        specs[str(path)] = loaded
        gpus = loaded.where("target", "gpus")
        wanted = spec.target.driver or spec.target.gpus
        target = target_offer(spec.target, facts, where=gpus) if wanted else None
        if spec.external is not None:
            subject = _image_subject(here, spec.external, loaded, facts)
            found.append(((replace(subject, path=str(path)),), target))
            continue
        lock, stale = _lock(loaded) if lock_path(path).exists() else (None, "")
        found.append((subject_of_stack(spec, str(path), lock, stale, facts), target))
    return found


def _lock(loaded: LoadedSpec) -> tuple[Lock, str]:
    """A stack's lock, and why it does not belong to the spec any more; empty when it does."""
    from stackbuild.lock.file import read_lock, staleness
    from stackbuild.lock.path import lock_path

    lock = read_lock(lock_path(loaded.path))
    return lock, staleness(lock, loaded.spec, loaded.folder)


def _image_subject(here: Project, reference: str, loaded: LoadedSpec | None, facts: Facts) -> Subject:
    """An image's subject from the engine where it has the image, else from the registry."""
    from stackbuild.annotate.image_reference import find_image, split_reference
    from stackbuild.compat.cuda_tag import parse_cuda_tag
    from stackbuild.compat.subjects import subject_of_cuda_tag, subject_of_image
    from stackbuild.errors import NotJudgedError
    from stackbuild.spec.gpu_image import is_cuda_image

    try:
        image = find_image(reference, here.site)
    except NotJudgedError as error:
        repository, tag, _ = split_reference(reference)
        if not is_cuda_image(repository) or parse_cuda_tag(tag) is None:
            raise
        spec = loaded.spec if loaded else None
        return subject_of_cuda_tag(reference, repository, tag, str(error.what), facts, spec)
    name = loaded.spec.name if loaded else reference
    return subject_of_image(name, image.config, image.platform, image.pins, loaded.spec if loaded else None)


def _annotations(report: CheckReport, specs: dict[str, LoadedSpec]) -> str:
    """Every finding at the line of the spec that it is about."""
    from stackbuild.cli.report_output import spec_annotations
    from stackbuild.reports.github import lines

    paths = {stack.stack: stack.path for stack in report.stacks}
    rows = [(stack.stack, "", stack.findings) for stack in report.stacks]
    rows += [(cell.stack, cell.host, cell.findings) for cell in report.cells]
    return lines(
        told
        for name, host, findings in rows
        for told in spec_annotations(findings, specs.get(paths[name]), host)
    )
