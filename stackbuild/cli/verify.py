"""``stackbuild verify``: run the suite in an image."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options
from stackbuild.reports.formats import REPORT_FORMATS

if TYPE_CHECKING:
    from stackbuild.verification.bound import Emitted
    from stackbuild.verification.model import Injection


@click.command("verify")
@click.argument("target", metavar="IMAGE|STACK", required=False)
@click.option(
    "--gpus",
    metavar="all|none|N|device=ID[,ID]",
    help="GPUs to reserve. Default: all for a GPU stack, none for a CPU stack.",
)
@click.option(
    "--capabilities",
    metavar="NAME[,NAME]",
    default="compute,utility",
    show_default=True,
    help="What the reservation asks of the driver, as the deployment does.",
)
@click.option(
    "--injection",
    type=click.Choice(["auto", "hook", "runtime", "cdi", "all"]),
    default="auto",
    show_default=True,
    help="How GPUs reach the container; all repeats the run in each way the engine has, and compares.",
)
@click.option(
    "--user", metavar="NAME|UID", help="Run as this user. Default: the spec's, then the image's own."
)
@click.option("--shm-size", metavar="SIZE", help="Size of /dev/shm, for example 1g. Default: the spec's.")
@click.option("--read-only", is_flag=True, help="Run with a read-only root file system.")
@click.option(
    "--evidence",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Also profile the run, and write the profiler's trace here. Decides nothing.",
)
@click.option("--gate", "gates", multiple=True, metavar="CODE", help="Judge this gate only; may be repeated.")
@click.option("--fresh", is_flag=True, help="Run even when there is a result for exactly these inputs.")
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of the whole run.",
)
@click.option(
    "--attach", is_flag=True, help="Pull the IMAGE from its registry, run, and attach the report to it there."
)
@click.option(
    "--local", is_flag=True, help="Run in a Python of this machine: judges an environment, not an image."
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="With --local: the interpreter. Default: the one that runs stackbuild.",
)
@click.option(
    "--emit",
    type=click.Choice(["k8s-job", "sbatch", "compose"]),
    help="Run nothing: write what runs the suite elsewhere, with the GPUs reserved.",
)
@click.option(
    "--collect",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Run nothing: judge the output of what --emit wrote.",
)
@click.option(
    "--image", metavar="REF", help="With --emit or --collect: the STACK's image, as it is called there."
)
@click.option("--strict", is_flag=True, help="A WARN fails.")
@output_options(formats=REPORT_FORMATS)
def command(
    target: str | None,
    gpus: str | None,
    capabilities: str,
    injection: Injection,
    user: str | None,
    shm_size: str | None,
    read_only: bool,
    evidence: Path | None,
    gates: tuple[str, ...],
    fresh: bool,
    limit: float,
    attach: bool,
    local: bool,
    python: Path | None,
    emit: Emitted | None,
    collect: Path | None,
    image: str | None,
    strict: bool,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run the verification suite in a container of an image, without network, and judge it.

    A STACK's latest image is judged against its lock; an IMAGE against what its labels and configuration
    promise. Where there is no Docker: --local, or --emit there and --collect here.
    Exit codes: 0 passed, 1 a gate failed, 5 could not be judged.
    """
    from stackbuild.cli.context import project
    from stackbuild.cli.host_card import local_card
    from stackbuild.cli.progress import observed
    from stackbuild.cli.report_output import write_verification
    from stackbuild.cli.verify_elsewhere import Elsewhere, refuse_together
    from stackbuild.errors import SpecError
    from stackbuild.findings import exit_code_of
    from stackbuild.verification.gpus import default_gpus, parse_gpus
    from stackbuild.verification.target import target_of_image, target_of_stack
    from stackbuild.verification.verify import VerifyOptions, verify_image

    here = project()
    asked = parse_gpus(gpus) if gpus is not None else None
    refuse_together(
        target=target, attach=attach, local=local, python=python, emit=emit, collect=collect, image=image
    )
    try:
        spec_path = None if attach or target is None or here.names_image(target) else here.stack(target)
    except SpecError as error:
        if error.code != "spec-not-found" or (target or "").endswith((".yaml", ".yml")):
            raise
        spec_path = None
    elsewhere = Elsewhere(
        project=here,
        target=target or "",
        spec_path=spec_path,
        image=image or "",
        gpus=asked,
        capabilities=tuple(capabilities.split(",")),
        user=user,
        shm_size=shm_size,
        read_only=read_only,
        gates=gates,
        limit=limit,
    )
    if emit is not None:
        from stackbuild.cli.output import write_result

        write_result(elsewhere.emitted(emit), output)
        return
    if collect is not None or local:
        with observed(quiet=quiet) as observer:
            report = elsewhere.collected(collect) if collect else elsewhere.local(python, observer)
        write_verification(report, format_, output, spec_path=spec_path, strict=strict, verbose=verbose)
        click.get_current_context().exit(int(exit_code_of(report.findings, strict=strict)))
    assert target is not None
    with here.engine() as engine, observed(quiet=quiet) as observer, ExitStack() as pulled:
        if attach:
            from stackbuild.publish.judged_elsewhere import attach_report, pulled_subject

            subject = pulled.enter_context(pulled_subject(engine, target, here.site, observer))
            target = subject.reference
        found = target_of_stack(engine, spec_path) if spec_path else target_of_image(engine, target)
        options = VerifyOptions(
            gpus=replace(
                asked if asked is not None else default_gpus(found.promise.device),
                capabilities=tuple(capabilities.split(",")),
            ),
            injection=injection,
            card=local_card(),
            user=user,
            shm_size=shm_size,
            read_only=read_only,
            evidence=evidence,
            gates=gates,
            # What is attached tells of this machine and this hour: an earlier result may be of another GPU behind
            # an engine of the same id, and is too old one day.
            fresh=fresh or attach,
            limit=limit,
        )
        report = verify_image(engine, found.image, found.promise, options, observer, store=here.store)
        if found.waivers or here.site.policy.severities:
            from datetime import UTC, datetime

            from stackbuild.verification.acceptance import with_acceptance

            report = with_acceptance(report, found.waivers, here.site.policy, datetime.now(UTC).date())
        if attach:
            attach_report(subject, report, here.site, observer)
    write_verification(report, format_, output, spec_path=spec_path, strict=strict, verbose=verbose)
    click.get_current_context().exit(int(exit_code_of(report.findings, strict=strict)))
