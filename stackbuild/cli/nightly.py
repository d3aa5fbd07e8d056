"""``stackbuild nightly``: rebuild everything from nothing, and say what is not as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackbuild.cli.options import output_options, stack_argument
from stackbuild.reports.formats import REPORT_FORMATS

if TYPE_CHECKING:
    from datetime import datetime

    from stackbuild.cli.context import Project
    from stackbuild.nightly.ground import Ground, Keep, NightOptions
    from stackbuild.progress import Observer

_FOLDER = Path("nightly")


@click.command("nightly")
@stack_argument
@click.option("--all", "everything", is_flag=True, help="All stacks of the folder; so without a STACK.")
@click.option(
    "--no-rebuild", "quick", is_flag=True, help="Build nothing: a quick night judges what is there."
)
@click.option(
    "--published",
    default="",
    metavar="PREFIX",
    help="Where stacks are published, as PREFIX/STACK: what to compare with where the engine has no image.",
)
@click.option("--accept", is_flag=True, help="Where a rebuild differs: hold the next nights against it.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Stacks to judge at a time."
)
@click.option("--part", hidden=True, help="Of the night of this id, which another process puts together.")
@click.option(
    "--shared",
    hidden=True,
    type=click.Path(path_type=Path),
    help="What the parts of a night have in common.",
)
@click.option("--gpus", metavar="all|none|N|device=ID[,ID]", help="GPUs to reserve for verifying.")
@click.option("--strict", is_flag=True, help="A WARN fails.")
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="How often to try stacks again, at the end, that infrastructure kept from being judged.",
)
@click.option(
    "--retry-pause",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait before that.",
)
@click.option(
    "--history",
    "history_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=_FOLDER / "history.sqlite",
    show_default=True,
    metavar="FILE",
    help="Where nights are remembered.",
)
@click.option(
    "--page",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the page of all nights there.",
)
@click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where reports go, a folder for each night and stack. Default: reports/ in the page's folder, or nightly/.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=14,
    show_default=True,
    metavar="NIGHTS",
    help="Of how many nights the reports stay; the history keeps all.",
)
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write JUnit XML."
)
@click.option(
    "--work-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the empty stores of the rebuilds are made. Default: in the store.",
)
@output_options(formats=REPORT_FORMATS)
def command(
    stacks: tuple[str, ...],
    everything: bool,
    quick: bool,
    published: str,
    accept: bool,
    jobs: int,
    part: str | None,
    shared: Path | None,
    gpus: str | None,
    strict: bool,
    retries: int,
    retry_pause: float,
    history_file: Path,
    page: Path | None,
    reports: Path | None,
    keep: int,
    junit: Path | None,
    work_dir: Path | None,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Rebuild stacks from nothing and judge them: inputs, drift, gates, newer versions.

    Nothing that people use is touched: no lock is written, no tag moved; images of the night are called
    STACK:nightly. Exit codes: 0 all is as it was, 3 a lock cannot be honoured, 4 a build failed, 1 a gate
    failed, 5 could not be judged, 6 drift; of several the first in this order.
    """
    from datetime import UTC, datetime

    from stackbuild.cli.context import project
    from stackbuild.cli.nightly_output import forget_reports, keeper, require_places, write_night
    from stackbuild.cli.progress import observed
    from stackbuild.nightly.ground import NightOptions, stores_area
    from stackbuild.nightly.history.history import History
    from stackbuild.nightly.night import night_id, run_night
    from stackbuild.verification.gpus import parse_gpus

    here = project()
    specs = here.stacks(stacks, everything=everything or not stacks)
    options = NightOptions(
        rebuild=not quick,
        gpus=parse_gpus(gpus) if gpus is not None else None,
        strict=strict,
        published=published.rstrip("/"),
        accept=accept,
        retries=retries,
        pause=retry_pause,
        work_dir=work_dir.absolute() if work_dir is not None else None,
    )
    folder = page or _FOLDER
    kept = reports or folder / "reports"
    if page is not None and junit is None and part is None:
        junit = page / "nightly.xml"
    if part is None:
        require_places(history_file, (page, kept, options.work_dir), (output, junit))
    started = datetime.now(UTC)
    id_ = part or night_id(started)
    night = None
    try:
        with observed(quiet=quiet) as observer, History(history_file, observer=observer) as history:
            if jobs > 1 and len(specs) > 1:
                from stackbuild.cli.nightly_jobs import night_in_processes

                arguments = _arguments(options, gpus, history_file, folder, kept, id_, quiet=quiet)
                night = night_in_processes(
                    specs,
                    jobs,
                    arguments,
                    id_=id_,
                    started=started,
                    retries=retries,
                    pause=retry_pause,
                    area=stores_area(here.store, options),
                    observer=observer,
                )
            else:
                night = run_night(
                    specs,
                    id_=id_,
                    started=started,
                    ground=_ground(here, observer, started, keeper(kept / id_, folder), shared),
                    options=options,
                    history=history,
                )
            if night.stacks and part is None:
                history.add(night)
            if page is not None and part is None:
                from stackbuild.nightly.page.write import write_page

                write_page(history, page, now=datetime.now(UTC))
                if not kept.resolve().is_relative_to(page.resolve()):
                    observer.note(
                        f"The page's links to reports lead out of its folder, to {kept}: copied alone, it loses them."
                    )
    finally:
        # What a night found is told even where it cannot be remembered.
        if night is not None:
            write_night(night, format_, output, junit, specs, strict=strict, verbose=verbose, folder=folder)
    if part is None:
        forget_reports(kept, keep)
    if night.interrupted:
        raise KeyboardInterrupt
    click.get_current_context().exit(int(night.exit_code))


def _ground(here: Project, observer: Observer, started: datetime, keep: Keep, shared: Path | None) -> Ground:
    import os

    from stackbuild.facts.tables import Facts
    from stackbuild.nightly.ground import Ground
    from stackbuild.registry.answers import RegistryAnswers
    from stackbuild.store.outages import Outages
    from stackbuild.store.shared_outages import OUTAGES, SharedOutages

    return Ground(
        site=here.site,
        store=here.store,
        connect=here.engine,
        environ=os.environ,
        observer=observer,
        facts=Facts(),
        today=started.date(),
        keep=keep,
        answers=RegistryAnswers(shared),
        outages=SharedOutages(shared / OUTAGES) if shared is not None else Outages(),
    )


def _arguments(
    options: NightOptions,
    gpus: str | None,
    history: Path,
    folder: Path,
    reports: Path,
    id_: str,
    *,
    quiet: bool,
) -> list[str]:
    """The options of a part of this night."""
    switches = {
        "--no-rebuild": not options.rebuild,
        "--accept": options.accept,
        "--strict": options.strict,
        "-q": quiet,
    }
    values = {
        "--published": options.published or None,
        "--gpus": gpus,
        # What is tried again is tried at the end of the whole night.
        "--retries": 0,
        "--work-dir": options.work_dir,
        "--history": history,
        "--page": folder,
        "--reports": reports,
        "--part": id_,
    }
    given = [text for name, value in values.items() if value is not None for text in (name, str(value))]
    return [name for name, on in switches.items() if on] + given
