"""What is to be run elsewhere: the image by digest, the suite with its plan, and how the container is set up."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stackbuild.errors import UsageError
from stackbuild.layers.chain import chain_key
from stackbuild.spec.model import Waiver
from stackbuild.verification.bound import Bound, Emitted, promise_digest
from stackbuild.verification.files import SUITE_FOLDER, stack_files
from stackbuild.verification.gpus import ALL, GpuSelection
from stackbuild.verification.launch import ARCHIVE_NAME, INTERPRETERS, PLAN_NAME
from stackbuild.verification.plan import RESULTS_FOLDER, plan_bytes, plan_gates
from stackbuild.verification.promise import Promise
from stackbuild.verification.suite_archive import suite_archive, suite_sha256

OLDEST_PYTHON = "(3, 9)"


@dataclass(frozen=True)
class ElsewhereImage:
    """An image that is to be run, or was run, elsewhere.

    Attributes:
        reference: As it was named.
        runs: ``REPOSITORY@DIGEST``; empty when no registry has it as far as is known.
        id: The engine's id; empty when it came from a registry.
        config_digest: ``sha256:…``; empty when it is not known.
        diff_ids: Of its layers.
        platform: For example ``linux/amd64``.
        promise: What it must keep.
        waivers: The spec's.
    """

    reference: str
    runs: str
    id: str
    config_digest: str
    diff_ids: tuple[str, ...]
    platform: str
    promise: Promise
    waivers: tuple[Waiver, ...] = ()


@dataclass(frozen=True)
class ElsewhereRun:
    """All that a manifest or script needs.

    Attributes:
        name: A name for the job, fit for DNS (RFC 1123 label).
        bound: What the run is of.
        asked: What ``stackbuild verify`` is to be given with the output: a stack or an image, as it was asked for.
        files: Name in the suite's folder → content.
        interpreters: Candidates, the first that works is taken; one means that it is promised.
        gpus: GPUs to reserve.
        user: Name or uid; None for the image's own.
        shm_size: For example ``1g``.
        ulimits: Soft and hard.
        read_only: Read-only root file system.
        limit: Seconds for the whole run.
    """

    name: str
    bound: Bound
    asked: str
    files: Mapping[str, bytes]
    interpreters: tuple[str, ...]
    gpus: GpuSelection
    user: str | None = None
    shm_size: str | None = None
    ulimits: Mapping[str, int] = field(default_factory=dict)
    read_only: bool = False
    limit: float = 900.0

    @property
    def command(self) -> list[str]:
        """What the container runs: the suite by its interpreter, or by the first that a shell finds."""
        if len(self.interpreters) == 1:
            return [self.interpreters[0], *suite_arguments()]
        return ["/bin/sh", "-c", self._finding_python()]

    def _finding_python(self) -> str:
        arguments = " ".join(suite_arguments())
        tried = " ".join(self.interpreters)
        return (
            f"for python in {tried}; do "
            f'"$python" -c "import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})" >/dev/null 2>&1 '
            f'&& exec "$python" {arguments}; done; '
            f'for python in {tried}; do command -v "$python" >/dev/null 2>&1 && exec "$python" {arguments}; done; '
            f'echo "no Python starts here: {tried}" >&2; exit 127'
        )


def suite_arguments(suite: str = SUITE_FOLDER, results: str = RESULTS_FOLDER) -> list[str]:
    """The interpreter's arguments, as in a container that is started here."""
    return ["-B", "-u", f"{suite}/{ARCHIVE_NAME}", f"{suite}/{PLAN_NAME}", results]


def elsewhere_run(
    image: ElsewhereImage,
    by: Emitted,
    gpus: GpuSelection,
    *,
    asked: str = "",
    user: str | None = None,
    shm_size: str | None = None,
    read_only: bool = False,
    limit: float = 900.0,
) -> ElsewhereRun:
    """Prepare a run elsewhere.

    Args:
        image: What to run.
        by: What will run it.
        gpus: GPUs to reserve there.
        asked: The stack or image as it was asked for, since that decides what is promised; the image when empty.
        user: As in ``verify``; the promise's when None.
        shm_size: As in ``verify``; the promise's when None.
        read_only: As in ``verify``.
        limit: Seconds.

    Raises:
        UsageError: ``emit-needs-registry``, ``emit-needs-count``.
        LockError: A file of the stack changed meanwhile.
    """
    promise = image.promise
    runs = image.runs or (image.id if by == "compose" else "")
    if not runs:
        raise UsageError(
            "No registry is known to have this image, so a cluster cannot pull it.",
            code="emit-needs-registry",
            where=image.reference,
            do="Push it (stackbuild publish), and name it as REPOSITORY:TAG or REPOSITORY@DIGEST.",
        )
    if by != "compose" and (gpus.device_ids or gpus.count == ALL):
        raise UsageError(
            f"A scheduler gives GPUs by number, not {gpus}.",
            code="emit-needs-count",
            do="Say --gpus N.",
        )
    bound = Bound(
        image=image.reference,
        runs=runs,
        config_digest=image.config_digest,
        layers=chain_key(image.diff_ids),
        promise_sha256=promise_digest(promise),
        suite_sha256=suite_sha256(),
        gpus=_written(gpus),
        by=by,
    )
    plan = json.loads(plan_bytes(plan_gates(promise, gpus)))
    plan["bound"] = bound.model_dump(mode="json", by_alias=True)
    files = {
        ARCHIVE_NAME: suite_archive(),
        PLAN_NAME: json.dumps(plan, sort_keys=True, indent=1).encode(),
        **stack_files(promise),
    }
    return ElsewhereRun(
        name=_job_name(promise.stack or image.reference, bound, limit),
        bound=bound,
        asked=asked or image.reference,
        files=files,
        interpreters=(promise.python_executable,) if promise.python_executable else INTERPRETERS,
        gpus=gpus,
        user=user or promise.user,
        shm_size=shm_size or promise.shm_size,
        ulimits=promise.ulimits,
        read_only=read_only or promise.read_only,
        limit=limit,
    )


def _written(gpus: GpuSelection) -> str:
    """As ``--gpus`` takes it."""
    if gpus.device_ids:
        return "device=" + ",".join(gpus.device_ids)
    return {ALL: "all", 0: "none"}.get(gpus.count, str(gpus.count))


def _job_name(stem: str, bound: Bound, limit: float) -> str:
    """At most 63 characters of a-z, 0-9 and hyphens; another run has another name."""
    word = re.sub(r"[^a-z0-9]+", "-", stem.lower().partition("@")[0]).strip("-")[:30].strip("-")
    text = f"{bound.model_dump_json()}{limit}"
    return f"stackbuild-verify-{word or 'image'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
