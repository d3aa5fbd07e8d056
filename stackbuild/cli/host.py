"""``stackbuild host``: the compatibility card of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from stackbuild.cli.options import output_options


@click.command("host")
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Show the hosts of a file instead: nvidia-smi output, Kubernetes or Slurm nodes, …",
)
@click.option("--name", metavar="NAME", help="The host's name in the card.")
@output_options
def command(
    source: Path | None,
    name: str | None,
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,  # noqa: ARG001
) -> None:
    """Show this machine's driver, GPUs and tools, its tier, and what it can run.

    Works without a GPU, a driver or Docker: what is not there is said, and the exit code is 0.
    --format json is the host file that check --host takes.
    """
    from datetime import UTC, datetime

    from stackbuild.cli.output import json_text, write_result
    from stackbuild.facts.tables import Facts
    from stackbuild.host.card import render_cards

    facts, today = Facts(), datetime.now(UTC).date()
    if source is not None:
        from stackbuild.host.fleet import read_hosts

        hosts = read_hosts(source)
    else:
        from stackbuild.host.inventory import take_inventory
        from stackbuild.host.probe import SystemProbe

        hosts = (take_inventory(SystemProbe(), facts, today),)
    if name is not None and len(hosts) == 1:
        hosts = (hosts[0].model_copy(update={"name": name}),)
    if format_ == "json":
        cards = [host.model_dump(mode="json", by_alias=True, exclude_none=True) for host in hosts]
        write_result(json_text(cards[0] if len(cards) == 1 else {"hosts": cards}), output)
    else:
        write_result(render_cards(hosts, facts, today), output)
