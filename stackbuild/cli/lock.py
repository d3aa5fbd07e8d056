"""``stackbuild lock``: pin every input of a stack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackbuild.cli.options import output_options, stack_argument

if TYPE_CHECKING:
    from stackbuild.cli.context import Project
    from stackbuild.resolution.wheels.uv import Upgrade
    from stackbuild.spec.load import LoadedSpec

_ALL = "*"


@click.command("lock")
@stack_argument
@click.option(
    "--upgrade",
    "upgrades",
    is_flag=False,
    flag_value=_ALL,
    multiple=True,
    metavar="[NAME]",
    help="Let this wheel, deb or 'base' move on; without a name, everything. May be repeated.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 3 when a lock is missing or stale.")
@click.option(
    "--export",
    type=click.Choice(["pylock"]),
    help="Print the wheels of one current lock as pylock.toml (PEP 751) instead of locking.",
)
@output_options
def command(
    stacks: tuple[str, ...],
    upgrades: tuple[str, ...],
    check: bool,
    export: str | None,
    format_: str,
    output: Path | None,
    quiet: bool,
    verbose: bool,  # noqa: ARG001 - the group reads it
) -> None:
    """Pin the base, the Debian packages and the wheels of stacks; all stacks of the folder without a name.

    What the lock has stays as it is while it fits the spec and can still be had; --upgrade lets it move.
    """
    from stackbuild.cli.context import project
    from stackbuild.errors import ExitCode, UsageError

    if sum((bool(upgrades), check, export is not None)) > 1:
        raise UsageError("--upgrade, --check and --export are three different things", code="usage")
    here = project()
    stacks, upgrades = _told_apart(here, stacks, upgrades)
    specs = here.stacks(stacks, everything=not stacks)
    if export:
        _export(here, specs, output)
        return
    rows = (
        _checked(specs, quiet=quiet)
        if check
        else _locked(here, specs, upgrades, everything=not stacks, quiet=quiet)
    )
    _show(rows, format_, output)
    if any(row["state"] in ("missing", "stale") for row in rows):
        click.get_current_context().exit(int(ExitCode.SPEC_OR_LOCK))


def _loaded(path: Path, *, quiet: bool) -> LoadedSpec:
    from stackbuild.cli.output import talk
    from stackbuild.spec.load import load_spec

    loaded = load_spec(path)
    if loaded.name_note and not quiet:
        talk(f"warning: {loaded.name_note}")
    return loaded


def _told_apart(
    here: Project, stacks: tuple[str, ...], upgrades: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """``--upgrade NAME`` with nothing behind it: NAME is the stack when there is one of that name."""
    from stackbuild.errors import SpecError

    if stacks or not upgrades or upgrades[-1] == _ALL:
        return stacks, upgrades
    try:
        here.stack(upgrades[-1])
    except SpecError:
        return stacks, upgrades
    return (upgrades[-1],), (*upgrades[:-1], _ALL) if len(upgrades) == 1 else upgrades[:-1]


def _locked(
    here: Project, specs: list[Path], upgrades: tuple[str, ...], *, everything: bool, quiet: bool
) -> list[dict[str, Any]]:
    from stackbuild.build.locking import lock_stack
    from stackbuild.cli.progress import observed
    from stackbuild.errors import LockError
    from stackbuild.lock.changes import lock_changes
    from stackbuild.lock.file import read_lock, write_lock
    from stackbuild.lock.path import lock_path

    upgrade: Upgrade = "all" if _ALL in upgrades else frozenset(upgrades)
    rows = []
    with here.engine() as engine, observed(quiet=quiet) as observer:
        for spec_path in specs:
            loaded = _loaded(spec_path, quiet=quiet)
            if everything and loaded.spec.external is not None:
                continue
            path = lock_path(spec_path)
            with here.store.lock(f"lock {path.absolute()}", observer=observer):
                try:
                    previous = read_lock(path)
                except LockError as error:
                    # A lock that cannot be used is made anew; only the conflict needs a person first.
                    if error.code == "lock-merge-conflict":
                        raise
                    previous = None
                    if error.code != "lock-missing":
                        observer.note(f"{path}: {error.what}; it is made anew")
                lock = lock_stack(
                    loaded,
                    site=here.site,
                    store=here.store,
                    engine=engine,
                    previous=previous,
                    upgrade=upgrade,
                    observer=observer,
                )
                written = write_lock(path, lock)
            rows.append(
                {
                    "stack": lock.stack,
                    "lock": str(path),
                    "state": ("locked" if previous is None else "updated") if written else "unchanged",
                    "changes": list(lock_changes(previous, lock)),
                    "findings": [
                        {"platform": platform, **finding.model_dump(mode="json")}
                        for platform, platform_lock in sorted(lock.platforms.items())
                        for finding in platform_lock.findings
                    ],
                }
            )
    return rows


def _checked(specs: list[Path], *, quiet: bool) -> list[dict[str, Any]]:
    from stackbuild.errors import LockError
    from stackbuild.lock.file import read_lock, staleness
    from stackbuild.lock.path import lock_path

    rows = []
    for spec_path in specs:
        loaded = _loaded(spec_path, quiet=quiet)
        if loaded.spec.external is not None:
            continue
        path = lock_path(spec_path)
        row: dict[str, Any] = {"stack": loaded.spec.name, "lock": str(path), "state": "current", "why": ""}
        try:
            row["why"] = staleness(read_lock(path), loaded.spec, loaded.folder)
        except LockError as error:
            if error.code != "lock-missing":
                raise
            row |= {"state": "missing", "why": error.what}
        else:
            row["state"] = "stale" if row["why"] else "current"
        rows.append(row)
    return rows


def _export(here: Project, specs: list[Path], output: Path | None) -> None:
    from stackbuild.cli.output import write_result
    from stackbuild.errors import UsageError
    from stackbuild.lock.file import read_lock, require_current
    from stackbuild.lock.path import lock_path
    from stackbuild.lock.pylock import pylock
    from stackbuild.resolution.wheels.fetch import wheel_locations
    from stackbuild.spec.load import load_spec

    if len(specs) != 1:
        raise UsageError("--export takes exactly one stack", code="usage")
    loaded = load_spec(specs[0])
    path = lock_path(specs[0])
    lock = read_lock(path)
    require_current(lock, loaded.spec, loaded.folder, path)
    if len(lock.platforms) != 1:
        raise UsageError("--export takes a stack of one platform", code="usage")
    ((platform, platform_lock),) = lock.platforms.items()
    locations = wheel_locations(platform_lock, here.site, indexes=loaded.spec.indexes)
    write_result(pylock(platform_lock, platform, locations), output)


def _show(rows: list[dict[str, Any]], format_: str, output: Path | None) -> None:
    from stackbuild.cli.output import json_text, write_result

    if format_ == "json":
        write_result(json_text({"stacks": rows}), output)
        return
    lines = []
    for row in rows:
        why = f": {row['why']}" if row.get("why") else ""
        lines.append(f"{row['stack']}: {row['state']}{why}")
        lines += [f"  {change}" for change in row.get("changes", ())]
        for finding in row.get("findings", ()):
            lines.append(f"  {finding['verdict']} {finding['code']}: {finding['summary']}")
            if finding["next_step"]:
                lines.append(f"    {finding['next_step']}")
    write_result("".join(f"{line}\n" for line in lines), output)
