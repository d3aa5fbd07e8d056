"""Verifies an image: run the suite in it, judge the result, remember it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import EngineInfo, ImageInfo
from stackbuild.errors import LockError, NotJudgedError, UsageError
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.progress import Observer
from stackbuild.store.store import Store
from stackbuild.verification.gate_codes import GATE_CODES
from stackbuild.verification.gpus import GpuSelection, device_requests
from stackbuild.verification.launch import ARCHIVE_NAME, INTERPRETERS, PLAN_NAME, LaunchOptions, run_suite
from stackbuild.verification.model import HostBasics, Injection, JudgedImage, SuiteRun, VerificationReport
from stackbuild.verification.plan import STACK_MODEL, plan_bytes, plan_gates
from stackbuild.verification.promise import Promise
from stackbuild.verification.selection import select_gates
from stackbuild.verification.suite_archive import suite_archive, suite_sha256, suite_version
from stackbuild.verification.surroundings import Surroundings

_RECORD = "verification"


@dataclass(frozen=True)
class VerifyOptions:
    """How to verify.

    Attributes:
        gpus: GPUs to reserve.
        injection: How they reach the container; only ``auto`` (the engine's own way) so far.
        gates: Judge only these codes; empty for all. The report of a part is never complete.
        fresh: Run even when there is a result for exactly these inputs.
        limit: Seconds for the whole run.
    """

    gpus: GpuSelection = field(default_factory=GpuSelection)
    injection: Injection = "auto"
    gates: tuple[str, ...] = ()
    fresh: bool = False
    limit: float = 900.0


def verify_image(
    engine: Engine,
    image_ref: str,
    promise: Promise,
    options: VerifyOptions,
    observer: Observer,
    *,
    store: Store | None = None,
) -> VerificationReport:
    """Run the suite in a container of an image and judge it against a promise.

    Args:
        engine: The engine that has the image.
        image_ref: Name or id.
        promise: What the image must keep.
        options: GPUs, limits, selection.
        observer: Told of each gate as it begins.
        store: Where results are remembered; None to run always and remember nothing.

    Returns:
        The report. What kept the suite from running is a finding in it, not an exception.

    Raises:
        NotJudgedError: ``image-missing``, or the engine died on the way.
        LockError: ``onnx-model-changed``.
        UsageError: ``no-such-gate``.
    """
    _refuse_unknown(options.gates)
    image = engine.image(image_ref)
    if image is None:
        raise NotJudgedError(
            "The engine does not have this image.",
            code="image-missing",
            where=image_ref,
            do="Build the stack (stackbuild build STACK), or pull the image.",
        )
    info = engine.info()
    key = _cache_key(image, promise, options, info)
    if store is not None and not options.fresh:
        remembered = _remembered(store, key, image_ref)
        if remembered is not None:
            return remembered
    engine.sweep()
    began, clock = datetime.now(UTC), time.monotonic()
    run, findings = _run_and_judge(engine, image, promise, options, observer)
    findings = select_gates(findings, options.gates)
    report = VerificationReport(
        image=JudgedImage(
            reference=image_ref,
            id=image.id,
            diff_ids=image.diff_ids,
            platform=f"{image.os}/{image.architecture}",
        ),
        stack=promise.stack,
        promise=promise,
        promise_sha256=promise.digest,
        suite_version=suite_version(),
        suite_sha256=suite_sha256(),
        host=_host(info, run),
        injection=options.injection,
        gpus=str(options.gpus),
        started=began.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(time.monotonic() - clock, 3),
        findings=findings,
        complete=is_complete(findings),
        log=run.log,
        log_bytes=run.log_bytes,
    )
    # What could not be judged says nothing of the image: it is judged again next time.
    if store is not None and not any(found.verdict is Verdict.ERROR for found in findings):
        store.put_record(_RECORD, key, report.model_dump(mode="json", by_alias=True))
    return report


def _run_and_judge(
    engine: Engine, image: ImageInfo, promise: Promise, options: VerifyOptions, observer: Observer
) -> tuple[SuiteRun, tuple[Finding, ...]]:
    # Judging reads the facts, which a remembered result has no need of.
    from stackbuild.verification.judge.run import judge_run, not_run
    from stackbuild.verification.judge.start_failure import judge_start_failure

    files = {
        ARCHIVE_NAME: suite_archive(),
        PLAN_NAME: plan_bytes(plan_gates(promise, options.gpus)),
        **_model_file(promise),
    }
    launch = LaunchOptions(
        interpreters=(promise.python_executable,) if promise.python_executable else INTERPRETERS,
        device_requests=device_requests(options.gpus),
        shm_size=promise.shm_size,
        limit=options.limit,
    )
    try:
        run = run_suite(engine, image, files, launch, observer)
    except NotJudgedError as error:
        if error.code not in ("container-start-failed", "engine-refused"):
            raise
        obstacle = judge_start_failure(error.detail)
        return SuiteRun(limit=options.limit), (
            obstacle,
            *not_run(f"not judged: {obstacle.code}", GATE_CODES, promise),
        )
    return run, judge_run(promise, run, Surroundings(gpus=options.gpus))


def _model_file(promise: Promise) -> Mapping[str, bytes]:
    """The stack's own ONNX model, if it is still the one that was promised."""
    if promise.onnx_model is None:
        return {}
    content = Path(promise.onnx_model).read_bytes()
    if hashlib.sha256(content).hexdigest() != promise.onnx_model_sha256:
        raise LockError(
            "The ONNX model changed while it was being verified.",
            code="onnx-model-changed",
            where=promise.onnx_model,
            do="Run the same command again.",
        )
    return {STACK_MODEL: content}


def _host(info: EngineInfo, run: SuiteRun) -> HostBasics:
    interpreter = run.results.get("interpreter")
    return HostBasics(
        engine=info.server_version,
        storage_driver=info.storage_driver,
        architecture=info.architecture,
        # A container shares the host's kernel, which may not be this machine's.
        kernel=interpreter.measured.get("kernel", "") if interpreter else "",
    )


def _cache_key(image: ImageInfo, promise: Promise, options: VerifyOptions, info: EngineInfo) -> str:
    inputs: dict[str, Any] = {
        "image": image.id,
        "suite": suite_sha256(),
        "promise": promise.digest,
        "engine": [info.engine_id, info.server_version],
        "gpus": str(options.gpus),
        "injection": options.injection,
        "gates": sorted(options.gates),
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _remembered(store: Store, key: str, image_ref: str) -> VerificationReport | None:
    record = store.record(_RECORD, key)
    if record is None:
        return None
    try:
        report = VerificationReport.model_validate(record)
    except ValidationError:
        return None  # written by another version: run again
    image = report.image.model_copy(update={"reference": image_ref})
    return report.model_copy(update={"cached": True, "image": image})


def _refuse_unknown(codes: tuple[str, ...]) -> None:
    unknown = [code for code in codes if code not in GATE_CODES]
    if unknown:
        raise UsageError(
            f"There is no runtime gate {', '.join(unknown)}.",
            code="no-such-gate",
            do=f"Gates: {', '.join(GATE_CODES)}.",
        )
