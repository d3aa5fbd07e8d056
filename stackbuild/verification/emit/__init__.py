"""Writes what runs the suite where stackbuild cannot: a Kubernetes Job, a Slurm script, a Compose file."""

from __future__ import annotations

from stackbuild.verification.elsewhere import ElsewhereRun
from stackbuild.verification.emit.compose import compose_file
from stackbuild.verification.emit.kubernetes import kubernetes_job
from stackbuild.verification.emit.slurm import slurm_script


def emit(run: ElsewhereRun) -> str:
    """The manifest or script for a run.

    Raises:
        UsageError: ``emit-too-large``: the stack's own files do not fit; ``emit-needs-uid``.
    """
    writers = {"k8s-job": kubernetes_job, "sbatch": slurm_script, "compose": compose_file}
    return writers[run.bound.by](run)
