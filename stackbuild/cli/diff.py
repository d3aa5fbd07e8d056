"""``stackbuild diff``: what differs between two images, locks or SBOMs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from stackbuild.cli.options import output_options
from stackbuild.reports.formats import SCAN_FORMATS

if TYPE_CHECKING:
    from stackbuild.drift.model import Drift, Level


@click.command("diff")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option(
    "--level",
    type=click.Choice(["pins", "packages", "files"]),
    default="files",
    show_default=True,
    help="The finest level to compare at; locks and SBOMs have no files.",
)
@click.option(
    "--platform",
    default="linux/amd64",
    show_default=True,
    metavar="OS/ARCH",
    help="Of an index or a lock, which platform.",
)
@click.option(
    "--image",
    "wanted",
    multiple=True,
    metavar="NAME",
    help="Which image of an archive with several; given twice, the second is for B.",
)
@click.option("--registry", is_flag=True, help="Ask the registry even when the engine has an image.")
@click.option("--no-store", is_flag=True, help="Read every layer anew and keep nothing.")
@output_options(formats=SCAN_FORMATS)
def command(
    before: str,
    after: str,
    level: str,
    platform: str,
    wanted: tuple[str, ...],
    registry: bool,
    no_store: bool,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Say what differs between A and B, in pins, packages and files; A is the older one.

    Each is an image as `scan` takes it, the path of a lock, the name of a stack (its lock), or a CycloneDX SBOM in JSON;
    they may be of two kinds. Times and known noise are no difference. Exit codes: 0 no difference of content,
    6 drift, 5 could not be compared.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.progress import observed
    from stackbuild.drift.compare import compare_subjects
    from stackbuild.drift.open_side import open_side
    from stackbuild.errors import ExitCode
    from stackbuild.findings import exit_code_of

    if len(wanted) > 2:
        raise click.UsageError("--image can be given twice at most: for A and for B.")
    here = project()
    store = None if no_store else here.store
    names = (wanted[0], wanted[-1]) if wanted else ("", "")
    with observed(quiet=quiet) as observer:
        sides = (
            open_side(
                target,
                site=here.site,
                store=store,
                observer=observer,
                find_stack=here.stack,
                platform=platform,
                wanted=name,
                registry=registry,
            )
            for target, name in zip((before, after), names, strict=True)
        )
        with next(sides) as first, next(sides) as second:
            drift = compare_subjects(
                first, second, store=store, observer=observer, level=cast("Level", level)
            )
    _write(drift, format_, output, verbose=verbose)
    judged = exit_code_of(drift.findings)
    code = judged if judged is not ExitCode.OK else ExitCode.DRIFT if drift.differs else ExitCode.OK
    click.get_current_context().exit(int(code))


def _write(drift: Drift, format_: str, output: Path | None, *, verbose: bool) -> None:
    from stackbuild.cli.output import plain, write_result

    if format_ == "json":
        from stackbuild.reports.json_report import render_json

        write_result(render_json(drift), output)
    elif format_ == "markdown":
        from stackbuild.reports.drift_markdown import render_drift_markdown

        write_result(render_drift_markdown(drift), output)
    elif format_ == "html":
        from stackbuild.reports.drift_html import render_drift_html

        write_result(render_drift_html(drift), output)
    elif format_ == "table":
        import shutil
        import sys

        from stackbuild.reports.drift_console import render_drift

        colour = output is None and not plain(sys.stdout)
        width = shutil.get_terminal_size().columns
        write_result(render_drift(drift, colour=colour, width=width, verbose=verbose), output)
    else:
        from stackbuild.reports.document import document_of
        from stackbuild.reports.junit import render_junit

        # A CI system reads this in place of the exit code: what makes that 6 has to be a failure.
        write_result(render_junit(document_of(drift), strict=drift.differs), output)
