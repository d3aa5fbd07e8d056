"""Verifies an image: run the suite in it, judge the result, remember it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError, UsageError
from stackbuild.findings import Verdict
from stackbuild.progress import Observer
from stackbuild.store.store import Store
from stackbuild.verification.binding import cache_key, host_basics, remember, remembered
from stackbuild.verification.gate_codes import GATE_CODES
from stackbuild.verification.judge.stack import CODE as STACK_CODE
from stackbuild.verification.model import JudgedImage, VerificationReport
from stackbuild.verification.options import VerifyOptions
from stackbuild.verification.promise import Promise
from stackbuild.verification.report import Circumstances, verification_report
from stackbuild.verification.runs import Verification

__all__ = ["VerifyOptions", "verify_image"]


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
        options: GPUs, injection, limits, selection.
        observer: Told of each gate as it begins.
        store: Where results are remembered; None to run always and remember nothing.

    Returns:
        The report. What kept the suite from running is a finding in it, not an exception.

    Raises:
        NotJudgedError: ``image-missing``, or the engine died on the way.
        LockError: ``onnx-model-changed``.
        UsageError: ``no-such-gate``.
    """
    refuse_unknown(options.gates)
    image = engine.image(image_ref)
    if image is None:
        raise NotJudgedError(
            "The engine does not have this image.",
            code="image-missing",
            where=image_ref,
            do="Build the stack (stackbuild build STACK), or pull the image.",
        )
    info = engine.info()
    key = cache_key(image, promise, options, info)
    if store is not None and not options.fresh and options.evidence is None:
        earlier = remembered(store, key, image_ref)
        if earlier is not None:
            return earlier
    engine.sweep()
    began, clock = datetime.now(UTC), time.monotonic()
    judged = Verification(engine, info, image, promise, options, observer).judged()
    subject = JudgedImage(
        reference=image_ref,
        id=image.id,
        diff_ids=image.diff_ids,
        platform=f"{image.os}/{image.architecture}",
    )
    circumstances = Circumstances(
        ran="container",
        host=host_basics(info, judged.run),
        card=options.card,
        injection=judged.by,
        gpus=str(options.gpus),
        started=began,
        seconds=time.monotonic() - clock,
    )
    report = verification_report(subject, promise, judged.run, judged.findings, circumstances, options.gates)
    # What could not be judged says nothing of the image: it is judged again next time.
    if store is not None and not any(found.verdict is Verdict.ERROR for found in report.findings):
        remember(store, key, report)
    return report


def refuse_unknown(codes: tuple[str, ...]) -> None:
    """Refuse gates that there are none of.

    Raises:
        UsageError: ``no-such-gate``.
    """
    unknown = [code for code in codes if code not in (*GATE_CODES, STACK_CODE)]
    if unknown:
        raise UsageError(
            f"There is no runtime gate {', '.join(unknown)}.",
            code="no-such-gate",
            do=f"Gates: {', '.join(GATE_CODES)}.",
        )
