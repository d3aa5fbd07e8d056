"""``stackbuild matrix``: the jobs of a CI service."""

from __future__ import annotations

from pathlib import Path

import click

from stackbuild.cli.options import output_options, stack_argument


@click.command("matrix")
@stack_argument
@click.option("--all", "everything", is_flag=True, help="Every stack in stacks/, as without a name.")
@click.option(
    "--changed-since",
    metavar="REV",
    help="Only stacks of which something changed since HEAD and this Git revision parted.",
)
@output_options(formats=("table", "json", "github", "gitlab"))
def command(
    stacks: tuple[str, ...],
    everything: bool,
    changed_since: str | None,
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,  # noqa: ARG001
) -> None:
    """List the jobs of stacks: build, judge on each GPU of the target, promote; with the labels of runners.

    A stack changed when its spec, its lock, a file that it reads or the site file did; a comment counts.
    --format github writes lines for $GITHUB_OUTPUT, --format gitlab a child pipeline.
    """
    import os

    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.facts.tables import Facts
    from stackbuild.schedule.github_outputs import github_outputs
    from stackbuild.schedule.gitlab_pipeline import gitlab_pipeline
    from stackbuild.schedule.plan import plan_jobs
    from stackbuild.schedule.table import render_table
    from stackbuild.site_config import site_file
    from stackbuild.spec.load import STACKS_FOLDER, list_stacks, stacks_folder

    here = project()
    if changed_since is not None and not stacks:
        # That the last stack was removed is an answer, not a mistake.
        specs = list_stacks(here.start)
        folder: Path | None = stacks_folder(here.start) or here.start / STACKS_FOLDER
    else:
        specs = here.stacks(stacks, everything=everything or not stacks)
        folder = None
    matrix = plan_jobs(
        specs,
        here.start,
        Facts(),
        here.site,
        since=changed_since,
        stacks_folder=folder,
        site_file=site_file(here.start, os.environ),
    )
    if format_ == "json":
        write_result(json_text(matrix.model_dump(mode="json", by_alias=True)), output)
    elif format_ == "github":
        write_result(github_outputs(matrix), output)
    elif format_ == "gitlab":
        write_result(gitlab_pipeline(matrix), output)
    else:
        write_result(render_table(matrix), output)
