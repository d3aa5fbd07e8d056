"""``stackbuild pick``: the best image of a repository for this host, another one, or a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options

if TYPE_CHECKING:
    from stackbuild.compat.subject import HostOffer
    from stackbuild.facts.tables import Facts
    from stackbuild.publish.pick import Choice


_NAMED_HOSTS = 4


@click.command("pick")
@click.argument("repository", metavar="REPOSITORY")
@click.option("--driver", metavar="VERSION", help="For a host by its driver, for example 535.183.01.")
@click.option("--gpu", "gpus", multiple=True, metavar="NAME|CC", help="A GPU of that host; may be repeated.")
@click.option(
    "--fleet",
    "--host",
    "fleets",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="For all hosts of a file: what 'stackbuild host --format json' writes, nvidia-smi output, nodes.",
)
@output_options(formats=("table", "json", "reference"))
def command(
    repository: str,
    driver: str | None,
    gpus: tuple[str, ...],
    fleets: tuple[Path, ...],
    format_: str,
    output: Path | None,
    quiet: bool,  # noqa: ARG001
    verbose: bool,
) -> None:
    """Choose the best tag of a repository for this host, and say why the others lost. Nothing is pulled.

    --format reference prints REPOSITORY@DIGEST alone, for docker run. Exit codes: 0 one serves every host,
    1 none does.
    """
    from datetime import UTC, datetime

    from stackbuild.cli.context import project
    from stackbuild.cli.output import json_text, write_result
    from stackbuild.facts.tables import Facts
    from stackbuild.publish.pick import pick
    from stackbuild.registry.client import RegistryClient

    here = project()
    facts, today = Facts(), datetime.now(UTC).date()
    hosts = _hosts(fleets, driver, gpus, facts)
    with RegistryClient(here.site.registries, ca_bundle=here.site.ca_bundle) as client:
        choice = pick(client, repository, hosts, facts, here.site.policy, today)
    if format_ == "json":
        write_result(json_text(choice.model_dump(mode="json", by_alias=True, exclude_none=True)), output)
    elif format_ == "reference":
        if choice.chosen is None:
            from stackbuild.cli.output import talk

            talk(_table(choice, verbose=verbose).rstrip())
        else:
            write_result(choice.chosen + "\n", output)
    else:
        write_result(_table(choice, verbose=verbose), output)
    click.get_current_context().exit(0 if choice.chosen else 1)


def _hosts(
    fleets: tuple[Path, ...], driver: str | None, gpus: tuple[str, ...], facts: Facts
) -> list[HostOffer]:
    from stackbuild.compat.offer import described_offer
    from stackbuild.host.offer import host_offer

    found: list[HostOffer] = []
    if fleets:
        from stackbuild.host.fleet import read_hosts

        for file in fleets:
            found.extend(host_offer(host, facts) for host in read_hosts(file))
    if driver is not None or gpus:
        found.append(described_offer(driver, gpus, facts))
    if not found:
        from datetime import UTC, datetime

        from stackbuild.host.inventory import take_inventory
        from stackbuild.host.probe import SystemProbe

        found.append(host_offer(take_inventory(SystemProbe(), facts, datetime.now(UTC).date()), facts))
    return found


def _table(choice: Choice, *, verbose: bool) -> str:
    from stackbuild.counting import some_of

    on = some_of(choice.hosts, _NAMED_HOSTS)
    if choice.chosen is not None:
        lines = [f"{choice.repository}:{choice.chosen_tag}", f"  {choice.chosen}", f"  for {on}", ""]
    else:
        lines = [f"no image of {choice.repository} serves {on}", ""]
    width = max(len(candidate.tags[0]) for candidate in choice.candidates)
    for candidate in choice.candidates:
        lines.append(f"{candidate.verdict.value:<5}  {candidate.tags[0]:<{width}}  {candidate.reason}")
        if len(candidate.tags) > 1:
            lines.append(f"       {'':<{width}}  also {', '.join(candidate.tags[1:])}")
        if verbose:
            lines += [f"       {'':<{width}}  {found.code}: {found.summary}" for found in candidate.findings]
    return "\n".join(lines) + "\n"
