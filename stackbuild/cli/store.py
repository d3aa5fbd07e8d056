"""``stackbuild store``: show, check or empty the store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options, stack_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackbuild.build.old_images import OldImage

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@click.group("store")
def command() -> None:
    """Show, check or empty the store of wheels, debs and layers (safe to delete); show old images."""


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
    from stackbuild.counting import counted
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
        f"removed {counted(evicted.files, 'file')}, {amount(evicted.bytes, 'bytes')}; {amount(evicted.left, 'bytes')} are left\n",
        output,
    )


@command.command("images")
@stack_argument
@click.option("--remove", is_flag=True, help="Remove them; without it they are only shown.")
@output_options
def images(
    stacks: tuple[str, ...],
    remove: bool,
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,  # noqa: ARG001
) -> None:
    """Show images of earlier versions of STACKs (of all in stacks/) that the engine still has.

    Builds leave them for going back. Kept are what spec and lock stand for now, what STACK:latest names, and
    every tag that no build gave.
    """
    from stackbuild.build.old_images import old_images, remove_old_images
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.lock.file import read_lock
    from stackbuild.lock.path import lock_path
    from stackbuild.spec.load import load_spec

    here = project()
    specs = [load_spec(path) for path in here.stacks(stacks, everything=not stacks)]
    found: list[OldImage] = []
    in_use: list[OldImage] = []
    with here.engine() as engine:
        for stack in specs:
            if stack.spec.external is None and lock_path(stack.path).exists():
                old = old_images(engine, stack, read_lock(lock_path(stack.path)))
                found += old
                in_use += remove_old_images(engine, old) if remove else ()
    if format_ == "json":
        rows = [
            {
                "image": old.reference,
                "created": old.created,
                "bytes": old.size,
                "removed": remove and old not in in_use,
            }
            for old in found
        ]
        write_result(json_text({"images": rows}), output)
        return
    write_result(_old_images_text(found, in_use, remove=remove), output)


def _old_images_text(found: Sequence[OldImage], in_use: Sequence[OldImage], *, remove: bool) -> str:
    from stackbuild.cli.progress import amount
    from stackbuild.counting import counted

    if not found:
        return "no image of an earlier version is there\n"
    lines = [
        f"{old.reference}  {old.created[:10]}  {amount(old.size, 'bytes')}"
        + ("  stays: a container uses it" if old in in_use else "")
        for old in found
    ]
    gone = len(found) - len(in_use)
    lines.append(
        f"removed {gone} of {len(found)}"
        if remove
        else f"{counted(len(found), 'image')}; sizes count layers that others share; --remove removes them"
    )
    return "\n".join(lines) + "\n"


@command.command("verify")
@output_options
def verify(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:  # noqa: ARG001
    """Hash everything in the store again and remove what is damaged (exit 1 when something was)."""
    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.errors import ExitCode

    damaged = list(project().store.damaged())
    for found in damaged:
        found.remove()
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
