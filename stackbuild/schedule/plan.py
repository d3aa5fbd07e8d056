"""Makes the job matrix: loads stacks, keeps those that changed, and asks for their jobs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stackbuild.facts.tables import Facts
from stackbuild.schedule.changed import changed_files, removed_stacks
from stackbuild.schedule.git_changes import changes_since
from stackbuild.schedule.jobs import jobs_of
from stackbuild.schedule.model import JobMatrix, Since
from stackbuild.schedule.stack_files import stack_files
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import SUFFIXES, LoadedSpec, load_specs, name_taken


def plan_jobs(
    paths: Sequence[Path],
    folder: Path,
    facts: Facts,
    site: SiteConfig,
    *,
    since: str | None = None,
    stacks_folder: Path | None = None,
    site_file: Path | None = None,
) -> JobMatrix:
    """The jobs of stacks.

    Args:
        paths: The specs.
        folder: The folder that the pipeline's commands run in.
        facts: The compatibility data.
        site: The site configuration, for its runners.
        since: Keep only stacks that changed since this Git revision; None keeps all.
        stacks_folder: Where removed stacks are looked for; None looks for none.
        site_file: The file of the site configuration: when it changed, every stack did. One that lies outside the
            repository has no history to be compared with.

    Raises:
        SpecError: A spec is not valid, names an unknown GPU, or needs GPUs and names none; ``stack-name-twice``.
        UsageError: The revision cannot be compared with.
        NotJudgedError: ``shallow-clone``, ``git-failed``.
    """
    changes = changes_since(folder, since) if since is not None else None
    loaded = load_specs(paths)
    _require_own_names(loaded)
    jobs = []
    site_reads = (site_file,) if site_file is not None else ()
    if changes is not None and site_file is not None and not _inside(site_file, changes.root):
        site_reads = ()
    for stack in loaded:
        reasons = changed_files((*stack_files(stack), *site_reads), changes) if changes is not None else ()
        if changes is None or reasons:
            shown = os.path.relpath(stack.path, folder)
            jobs.append(jobs_of(stack, shown, facts, site.runners, changed=reasons))
    removed: tuple[str, ...] = ()
    if changes is not None and stacks_folder is not None:
        removed = removed_stacks(changes, stacks_folder, SUFFIXES)
    return JobMatrix(
        since=Since(revision=since, commit=changes.commit)
        if since is not None and changes is not None
        else None,
        stacks=tuple(jobs),
        removed=removed,
    )


def _require_own_names(stacks: Sequence[LoadedSpec]) -> None:
    """Refuse two stacks of one name: they would have one image, and a job of each would undo the other's."""
    places: dict[str, Path] = {}
    for stack in stacks:
        name = stack.spec.name
        if name in places:
            raise name_taken(stack, places[name])
        places[name] = stack.path


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root)
