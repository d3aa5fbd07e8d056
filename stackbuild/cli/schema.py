"""``stackbuild schema``: the JSON schema of the spec."""

from __future__ import annotations

from pathlib import Path

import click

from stackbuild.cli.options import output_options


@click.command("schema")
@output_options(formats=("json",))
def command(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:  # noqa: ARG001
    """Print the JSON schema of the spec, for editors and other tools.

    A spec names it in its first line: # yaml-language-server: $schema=stack.schema.json
    """
    from stackbuild.cli.output import write_result
    from stackbuild.spec.schema import spec_schema

    write_result(spec_schema(), output)
