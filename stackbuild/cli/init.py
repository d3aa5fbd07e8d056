"""``stackbuild init``: a commented spec to start from."""

from __future__ import annotations

from pathlib import Path

import click

from stackbuild.cli.options import output_options


@click.command("init")
@click.argument("name")
@output_options
def command(name: str, format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:  # noqa: ARG001
    """Write stacks/NAME.yaml, commented, with the schema that editors check it against.

    Nothing that is there is overwritten. With -o FILE the spec goes there; -o - shows it.
    """
    from stackbuild.cli.output import json_text, talk, write_result
    from stackbuild.errors import UsageError
    from stackbuild.output_file import write_file
    from stackbuild.spec.load import STACKS_FOLDER, stacks_folder
    from stackbuild.spec.schema import SCHEMA_FILE, spec_schema
    from stackbuild.spec.starter import starter_spec

    text = starter_spec(name)
    if str(output) == "-":
        write_result(text)
        return
    start = Path.cwd()
    path = output or (stacks_folder(start) or start / STACKS_FOLDER) / f"{name}.yaml"
    if path.exists() or path.is_symlink():
        raise UsageError(
            "it is there already, and is not overwritten",
            code="spec-exists",
            where=str(path),
            do="Choose another name, or remove the file first.",
        )
    write_file(path, text.encode())
    # The schema is rewritten each time, so that it fits the stackbuild that is installed.
    write_file(path.parent / SCHEMA_FILE, spec_schema().encode())
    if format_ == "json":
        write_result(json_text({"spec": str(path), "schema": str(path.parent / SCHEMA_FILE)}))
    if not quiet:
        talk(
            f"Wrote {path}. Next: edit it, then `stackbuild build --verify {name if output is None else path}`."
        )
