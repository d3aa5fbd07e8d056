"""``stackbuild scan``: judge what is in an image, without starting it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options
from stackbuild.collection import collection_paused
from stackbuild.reports.formats import SCAN_FORMATS

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.scan.gates.judge import Expectations
    from stackbuild.scan.scan import Scan
    from stackbuild.spec.model import Waiver


@click.command("scan")
@click.argument("target", metavar="IMAGE|ARCHIVE|DIR")
@click.option("--stack", metavar="STACK", help="Judge against this stack's lock, target and waivers.")
@click.option(
    "--gpu", "gpus", multiple=True, metavar="NAME|CC", help="A GPU it must run on; may be repeated."
)
@click.option("--driver", metavar="VERSION", help="The oldest driver it must run on.")
@click.option(
    "--platform",
    default="linux/amd64",
    show_default=True,
    metavar="OS/ARCH",
    help="Of an index, which image.",
)
@click.option("--image", "wanted", default="", metavar="NAME", help="Which image of an archive with several.")
@click.option("--registry", is_flag=True, help="Ask the registry even when the engine has the image.")
@click.option("--no-store", is_flag=True, help="Read every layer anew and keep nothing.")
@click.option(
    "--sbom",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the image's SBOM there in the same pass, as sbom --scan would.",
)
@click.option("--strict", is_flag=True, help="A WARN fails.")
@output_options(formats=SCAN_FORMATS)
@collection_paused()
def command(
    target: str,
    stack: str | None,
    gpus: tuple[str, ...],
    driver: str | None,
    platform: str,
    wanted: str,
    registry: bool,
    no_store: bool,
    sbom: Path | None,
    strict: bool,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Read what is in an image, layer by layer, and judge it; nothing of it is started.

    An image comes from the engine, else from its registry (its layers are read, not pulled); a path is a
    saved archive, an OCI layout, or the root of a file system. Layers that were scanned before are not read
    again. Exit codes: 0 passed, 1 a gate failed, 5 could not be read.
    """
    from datetime import UTC, datetime

    from stackbuild.cli.context import project
    from stackbuild.cli.output import plain, write_result
    from stackbuild.cli.progress import observed
    from stackbuild.facts.tables import Facts
    from stackbuild.findings import exit_code_of
    from stackbuild.output_file import require_apart
    from stackbuild.scan.expectations import with_stack_and_site
    from stackbuild.scan.gates.judge import judge_scan
    from stackbuild.scan.open_source import open_source
    from stackbuild.scan.report import scan_report
    from stackbuild.scan.scan import scan_of
    from stackbuild.scan.scan_image import scan_image

    require_apart(target, output, sbom)
    here = project()
    store = None if no_store else here.store
    today = datetime.now(UTC).date()
    facts = Facts()
    with (
        observed(quiet=quiet) as observer,
        open_source(
            target,
            site=here.site,
            store=store,
            observer=observer,
            platform=platform,
            wanted=wanted,
            registry=registry,
        ) as source,
    ):
        scan = scan_of(scan_image(source, observer, store=store))
    if sbom is not None:
        from stackbuild.sbom.kept import kept_scan_sbom

        write_result(kept_scan_sbom(scan, store), sbom)
    expected, waivers = _expectations(here, scan, stack, gpus, driver)
    findings = judge_scan(scan, expected, facts, today)
    findings = with_stack_and_site(findings, waivers, here.site.policy, today)
    report = scan_report(scan, findings)
    if format_ == "json":
        from stackbuild.reports.json_report import render_json

        write_result(render_json(report), output)
    elif format_ != "table":
        from stackbuild.reports.document import document_of
        from stackbuild.reports.formats import render_document

        write_result(render_document(document_of(report), format_, strict=strict), output)
    else:
        import shutil
        import sys

        from stackbuild.reports.console import render_console

        colour = output is None and not plain(sys.stdout)
        width = shutil.get_terminal_size().columns
        write_result(render_console(report, colour=colour, width=width, verbose=verbose), output)
    click.get_current_context().exit(int(exit_code_of(findings, strict=strict)))


def _expectations(
    here: Project, scan: Scan, stack: str | None, gpus: tuple[str, ...], driver: str | None
) -> tuple[Expectations, tuple[Waiver, ...]]:
    """What the image is held against: --gpu and --driver, else the stack's target; its lock's wheels."""
    from stackbuild.facts.tables import Facts
    from stackbuild.scan.expectations import expectations_of_stack
    from stackbuild.scan.gates.judge import Expectations

    facts = Facts()
    target = None
    if gpus or driver:
        from stackbuild.compat.offer import described_offer

        target = described_offer(driver, gpus, facts)
    if stack is None:
        return Expectations(target), ()
    platform = scan.files.description.platform
    return expectations_of_stack(here.stack(stack), platform, facts, target=target)
