"""``stackbuild render``: a stack as a Dockerfile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import remember_verbose

if TYPE_CHECKING:
    from stackbuild.spec.model import Platform


@click.command("render")
@click.argument("stack", metavar="STACK")
@click.option("--platform", metavar="OS/ARCH", help="Default: the first of the stack's platforms.")
@click.option("--wheels", is_flag=True, help="With -o: put the wheels into the context too.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["dockerfile", "json"]),
    default="dockerfile",
    show_default=True,
    help="How to show the result.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the whole context there: whole or not at all.",
)
@click.option("-q", "--quiet", is_flag=True, help="Tell errors only.")
@click.option("-v", "--verbose", is_flag=True, callback=remember_verbose, help="Tell more.")
def command(
    stack: str,
    platform: str | None,
    wheels: bool,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,  # noqa: ARG001 - the group reads it
) -> None:
    """Show the Dockerfile of a STACK, or write it with everything that docker build needs beside it.

    It needs the stack's lock. Without --wheels the build takes them from the indexes, by hash.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, talk, write_result
    from stackbuild.cli.progress import observed
    from stackbuild.errors import UsageError
    from stackbuild.lock.file import read_lock, require_current
    from stackbuild.lock.path import lock_path
    from stackbuild.output_file import writing
    from stackbuild.render.context import write_context
    from stackbuild.render.requirements import pip_steps, requirements_text
    from stackbuild.render.stack import RenderOptions, stack_context, stack_dockerfile
    from stackbuild.spec.load import load_spec

    if wheels and output is None:
        raise UsageError("--wheels is for a context: say where with -o DIR", code="usage")
    here = project()
    loaded = load_spec(here.stack(stack))
    spec = loaded.spec
    if spec.external is not None:
        raise UsageError("An external stack is built by others.", code="nothing-to-build", where=spec.name)
    path = lock_path(loaded.path)
    lock = read_lock(path)
    require_current(lock, spec, loaded.folder, path)
    chosen = _platform(platform, spec.platforms, spec.name)
    if output is not None:
        options = RenderOptions(with_wheels=wheels)
        with observed(quiet=quiet) as observer:
            entries = stack_context(
                spec,
                loaded.folder,
                lock,
                chosen,
                options,
                store=here.store,
                site=here.site,
                observer=observer,
            )
        with writing(output):
            write_context(entries, output)
        if not quiet:
            talk(f"{output}: docker build --tag {spec.name} {output}")
        return
    dockerfile = stack_dockerfile(spec, loaded.folder, lock, chosen)
    if format_ == "json":
        steps = pip_steps(lock.platforms[chosen].wheels, spec.indexes)
        files = {step.file: requirements_text(step.wheels, from_folder=False) for step in steps}
        write_result(
            json_text({"stack": spec.name, "platform": chosen, "dockerfile": dockerfile, "files": files})
        )
    else:
        write_result(dockerfile)


def _platform(wanted: str | None, platforms: tuple[Platform, ...], name: str) -> Platform:
    from stackbuild.errors import UsageError

    found = next((platform for platform in platforms if wanted in (None, platform)), None)
    if found is None:
        raise UsageError(
            f"The stack is for {', '.join(platforms)}, not for {wanted}.",
            code="platform-not-locked",
            where=name,
        )
    return found
