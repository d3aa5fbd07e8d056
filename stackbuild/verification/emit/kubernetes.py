"""The run as a Kubernetes Job.

Sources: Kubernetes API 1.31: batch/v1 Job; ConfigMap, whose data has at most 1 MiB; "Schedule GPUs", where
``nvidia.com/gpu`` is a limit.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from stackbuild.errors import UsageError
from stackbuild.verification.elsewhere import ElsewhereRun
from stackbuild.verification.emit.writing import PULL_SECONDS, head, too_large, yaml_text
from stackbuild.verification.files import SUITE_FOLDER
from stackbuild.verification.plan import RESULTS_FOLDER

_CONFIG_MAP_BYTES = 1_000_000
_SIZES = {"k": "Ki", "m": "Mi", "g": "Gi"}


def kubernetes_job(run: ElsewhereRun) -> str:
    """A ConfigMap with the suite, and a Job that mounts it."""
    if sum(len(content) for content in run.files.values()) > _CONFIG_MAP_BYTES:
        raise too_large(run, "a ConfigMap", "--emit sbatch takes more.")
    labels = {"app.kubernetes.io/name": "stackbuild-verify"}
    volumes: list[dict[str, Any]] = [
        {"name": "suite", "configMap": {"name": run.name}},
        {"name": "results", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "suite", "mountPath": SUITE_FOLDER, "readOnly": True},
        {"name": "results", "mountPath": RESULTS_FOLDER},
    ]
    if run.shm_size:
        size = re.sub("[kmg]$", lambda unit: _SIZES[unit[0]], run.shm_size)
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 - in the container
    security: dict[str, Any] = {"allowPrivilegeEscalation": False}
    if run.read_only:
        security["readOnlyRootFilesystem"] = True
        volumes.append({"name": "tmp", "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": "tmp", "mountPath": "/tmp"})  # noqa: S108 - in the container
    if run.user:
        security.update(_ids(run))
    container: dict[str, Any] = {
        "name": "verify",
        "image": run.bound.runs,
        "command": run.command,
        "securityContext": security,
        "volumeMounts": mounts,
    }
    if not run.gpus.none:
        container["resources"] = {"limits": {"nvidia.com/gpu": run.gpus.count}}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": run.name, "labels": labels},
        "immutable": True,
        "binaryData": {name: base64.b64encode(content).decode() for name, content in run.files.items()},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": run.name, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(run.limit) + PULL_SECONDS,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    }
    steps = [
        "kubectl apply -f THIS-FILE",
        f"kubectl wait --for=condition=complete --timeout={int(run.limit) + PULL_SECONDS}s job/{run.name}",
        f"kubectl logs job/{run.name} > output.txt",
    ]
    return head(run, steps) + yaml_text(config_map) + "---\n" + yaml_text(job)


def _ids(run: ElsewhereRun) -> dict[str, int]:
    match = re.fullmatch(r"(\d+)(?::(\d+))?", run.user or "")
    if match is None:
        raise UsageError(
            f"Kubernetes takes a user by number, not {run.user!r}.",
            code="emit-needs-uid",
            do="Say --user UID, or name a number in verify.user.",
        )
    ids = {"runAsUser": int(match[1])}
    return ids | {"runAsGroup": int(match[2])} if match[2] else ids
