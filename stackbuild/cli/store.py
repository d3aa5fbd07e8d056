"""``stackbuild store``: show, check or empty the store."""

from __future__ import annotations

import re
from pathlib import Path

import click

from stackbuild.cli.options import output_options

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@click.group("store")
def command() -> None:
    """Show, check or empty the store of wheels, debs and layers. It is safe to delete."""


@command.command("usage")
@output_options
def usage(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:  # noqa: ARG001
    """Show where the store is and what it holds."""
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.cli.progress import amount

    store = project().store
    rows = store.usage()
    total = sum(row.bytes for row in rows)
    if format_ == "json":
        kinds = {row.kind: {"files": row.files, "bytes": row.bytes} for row in rows}
        write_result(json_text({"path": str(store.root), "bytes": total, "kinds": kinds}), output)
        return
    lines = [f"{store.root}: {amount(total, 'bytes')}"]
    lines += [f"  {row.kind:<8} {row.files:>6} files  {amount(row.bytes, 'bytes'):>8}" for row in rows]
    write_result("\n".join(lines) + "\n", output)


@command.command("evict")
@click.option("--max-size", metavar="SIZE", help="What may stay, such as 20G: the most recently used.")
@click.option("--all", "everything", is_flag=True, help="Empty the store.")
@output_options
def evict(
    max_size: str | None,
    everything: bool,
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,  # noqa: ARG001
) -> None:
    """Remove what was used longest ago. What is needed again is fetched or made again."""
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.cli.progress import amount
    from stackbuild.errors import UsageError

    if everything == (max_size is not None):
        raise UsageError(
            "say what may stay: either --max-size or --all",
            code="usage",
            do="For example `stackbuild store evict --max-size 20G`.",
        )
    evicted = project().store.evict(max_bytes=parse_size(max_size) if max_size is not None else None)
    if format_ == "json":
        document = {"files": evicted.files, "bytes": evicted.bytes, "left": evicted.left}
        write_result(json_text(document), output)
        return
    write_result(
        f"removed {evicted.files} files, {amount(evicted.bytes, 'bytes')}; {amount(evicted.left, 'bytes')} are left\n",
        output,
    )


@command.command("verify")
@output_options
def verify(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:  # noqa: ARG001
    """Hash everything in the store again and remove what is damaged (exit 1 when something was)."""
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import ExitCode

    damaged = list(project().store.damaged())
    for found in damaged:
        found.path.unlink(missing_ok=True)
    if format_ == "json":
        rows = [
            {"path": str(found.path), "expected": found.expected, "measured": found.measured}
            for found in damaged
        ]
        write_result(json_text({"damaged": rows}), output)
    elif damaged:
        lines = [
            f"{found.path}: sha256 is {found.measured}, was {found.expected}; removed" for found in damaged
        ]
        write_result("\n".join(lines) + "\n", output)
    else:
        write_result("everything is what it is called\n", output)
    if damaged:
        click.get_current_context().exit(int(ExitCode.GATE_FAILED))


def parse_size(text: str) -> int:
    """Bytes of a size such as ``20G``, ``512M`` or ``1000``.

    Raises:
        UsageError: It is no size (code ``usage``).
    """
    from stackbuild.errors import UsageError

    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)b?", text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is not a size", code="usage", do="Write it like 20G or 512M.")
    return int(float(match.group(1)) * _UNITS[match.group(2)])
