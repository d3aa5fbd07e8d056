"""``stackbuild import``: the draft of a spec for an image that others built."""

from __future__ import annotations

from pathlib import Path

import click

from stackbuild.cli.options import output_options


@click.command("import")
@click.argument("target", metavar="IMAGE|ARCHIVE|DIR")
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="The stack's name. Default: as the image is called; of a stack's own image, the stack's.",
)
@click.option(
    "--platform",
    default="linux/amd64",
    show_default=True,
    metavar="OS/ARCH",
    help="Of an index, which image.",
)
@click.option("--image", "wanted", default="", metavar="NAME", help="Which image of an archive with several.")
@click.option("--registry", is_flag=True, help="Ask the registry even when the engine has the image.")
@output_options(formats=("yaml",))
def command(
    target: str,
    name: str,
    platform: str,
    wanted: str,
    registry: bool,
    format_: str,  # noqa: ARG001 - there is one
    output: Path | None,
    quiet: bool,
    verbose: bool,  # noqa: ARG001 - the group reads it
) -> None:
    """Draft a spec from what is in an image; nothing of it is started.

    The draft goes to stdout, or with -o to a file that is not there yet. It has the exact versions of the
    image; what a spec cannot say of it is listed in comments at its end.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.output import talk, write_result
    from stackbuild.cli.progress import observed
    from stackbuild.errors import UsageError
    from stackbuild.importing.draft import draft_spec
    from stackbuild.scan.open_source import open_source
    from stackbuild.scan.scan import scan_of
    from stackbuild.scan.scan_image import scan_image
    from stackbuild.spec.starter import check_name

    if name:
        check_name(name)
    if output is not None and (output.exists() or output.is_symlink()):
        raise UsageError(
            "it is there already, and is not overwritten",
            code="spec-exists",
            where=str(output),
            do="Choose another name, or remove the file first.",
        )
    here = project()
    with (
        observed(quiet=quiet) as observer,
        open_source(
            target,
            site=here.site,
            store=here.store,
            observer=observer,
            platform=platform,
            wanted=wanted,
            registry=registry,
        ) as source,
    ):
        text = draft_spec(scan_of(scan_image(source, observer, store=here.store)), name=name)
    write_result(text, output)
    if output is not None and not quiet:
        talk(f"Wrote {output}. Next: read the comments at its end, then `stackbuild lock {output}`.")
