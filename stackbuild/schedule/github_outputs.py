"""The matrix as outputs of a GitHub Actions step: one ``NAME=VALUE`` line each, for ``>> "$GITHUB_OUTPUT"``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from stackbuild.errors import UsageError
from stackbuild.schedule.model import BuildJob, JobMatrix, Runner

# GitHub documentation, "Usage limits for workflows": a matrix can make 256 jobs a run at most.
MOST_JOBS = 256
_HOSTED = {"cpu": ("ubuntu-24.04",), "cpu-arm64": ("ubuntu-24.04-arm",)}
_OWN = "self-hosted"


def github_outputs(matrix: JobMatrix) -> str:
    """The step's outputs.

    ``build``, ``judge`` and ``promote`` hold a matrix for ``fromJSON``. GitHub fails on an empty matrix, so
    ``any_build``, ``any_judge``, ``any_promote`` and ``any`` say ``true`` or ``false``, for the jobs' ``if``.
    ``removed`` holds the names of removed stacks as a JSON list.

    Raises:
        UsageError: ``matrix-too-large``: GitHub takes 256 jobs of one matrix.
    """
    tables: dict[str, list[Mapping[str, object]]] = {
        "build": [
            {"id": job.id, "stack": stack.stack, "spec": stack.path, "platform": job.platform}
            | {"runs_on": _runs_on(job.runner)}
            for stack, job in matrix.build
        ],
        "judge": [
            {
                "id": job.id,
                "build": _build_id(stack.build, job.platform),
                "stack": stack.stack,
                "spec": stack.path,
                "external": stack.external,
                "platform": job.platform,
                "requires": job.requires,
                "gpus": ", ".join(job.gpus),
                "runs_on": _runs_on(job.runner),
            }
            for stack, job in matrix.judge
        ],
        "promote": [
            {"id": job.id, "stack": stack.stack, "spec": stack.path, "require": job.require}
            | {"builds": " ".join(build.id for build in stack.build), "runs_on": _runs_on(job.runner)}
            for stack, job in matrix.promote
        ],
    }
    for name, rows in tables.items():
        if len(rows) > MOST_JOBS:
            raise UsageError(
                f"{len(rows)} {name} jobs are more than the {MOST_JOBS} that GitHub runs of one matrix.",
                code="matrix-too-large",
                do="Name fewer stacks, one workflow for each group of them; or use --changed-since.",
            )
    lines = [f"any={_word(bool(matrix.stacks))}"]
    for name, rows in tables.items():
        lines += [f"any_{name}={_word(bool(rows))}", f"{name}={_compact({'include': rows})}"]
    lines.append(f"removed={_compact(list(matrix.removed))}")
    return "".join(f"{line}\n" for line in lines)


def _build_id(builds: Sequence[BuildJob], platform: str) -> str:
    return next((build.id for build in builds if build.platform == platform), "")


def _runs_on(runner: Runner) -> list[str]:
    """``runs-on``: as the site file maps it; else a hosted runner for CPUs, an own one with the labels for GPUs."""
    if runner.mapped:
        return list(runner.labels)
    return list(_HOSTED.get(runner.kind, (_OWN, *runner.labels)))


def _word(value: bool) -> str:
    return "true" if value else "false"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))  # ASCII, so no line end of any kind is within
