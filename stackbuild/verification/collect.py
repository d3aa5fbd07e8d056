"""Judges the output of a run that took place elsewhere: the same gates, bound to the image it says it was of."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from pydantic import ValidationError

from stackbuild.counting import counted
from stackbuild.errors import UsageError
from stackbuild.findings import Finding, Verdict
from stackbuild.verification.bound import Bound, promise_digest
from stackbuild.verification.elsewhere import ElsewhereImage
from stackbuild.verification.gate_codes import GATE_CODES
from stackbuild.verification.gpus import GpuSelection, parse_gpus
from stackbuild.verification.judge.findings import finding
from stackbuild.verification.judge.run import judge_run, not_run
from stackbuild.verification.model import HostBasics, JudgedImage, SuiteRun, VerificationReport
from stackbuild.verification.plan import plan_gates
from stackbuild.verification.report import Circumstances, verification_report
from stackbuild.verification.suite_archive import suite_sha256
from stackbuild.verification.suite_output import MARK, SuiteOutput
from stackbuild.verification.surroundings import Surroundings
from stackbuild.verification.verify import refuse_unknown

_SHOWN_LOG = 4000
# What Windows' shell writes when a command's output is redirected.
_ENCODINGS = (
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def collect(content: bytes, image: ElsewhereImage, gates: tuple[str, ...] = ()) -> VerificationReport:
    """Judge what a run of the suite elsewhere printed.

    Args:
        content: All that the container printed; lines may have a prefix, such as a pod's name or a time.
        image: The image that it must be of, with what it promises.
        gates: Judge only these codes; empty for all.

    Returns:
        The report. Output that is cut, of another image or unreadable is an ERROR in it.

    Raises:
        UsageError: ``no-such-gate``.
    """
    refuse_unknown(gates)
    output = _last_run(content)
    run = SuiteRun(
        results=output.results,
        python=output.python,
        python_too_old=output.python_too_old,
        finished=output.finished,
        exit_code=0 if output.finished else None,
        log=output.log,
        log_bytes=output.log_bytes,
    )
    bound = _bound(output)
    gpus = parse_gpus(bound.gpus) if bound is not None else GpuSelection()
    obstacle = _obstacle(bound, image, output, len(content))
    if obstacle is None:
        findings = _judged(image, run, gpus)
    else:
        # Nothing of it may count for this image, not even a time.
        run = SuiteRun(log=run.log, log_bytes=run.log_bytes)
        others = not_run(f"not judged: {obstacle.code}", GATE_CODES, image.promise)
        findings = (obstacle, *others)
    here = run.results.get("interpreter")
    measured = here.measured if here is not None else {}
    circumstances = Circumstances(
        ran="collected",
        host=HostBasics(
            engine="",
            architecture=str(measured.get("machine", "")),
            kernel=str(measured.get("kernel", "")),
        ),
        gpus=str(gpus),
        started=datetime.now(UTC),
        seconds=0.0,
    )
    subject = JudgedImage(
        reference=image.reference,
        id=image.config_digest or image.id,
        diff_ids=image.diff_ids,
        platform=image.platform,
    )
    return verification_report(subject, image.promise, run, findings, circumstances, gates)


def _judged(image: ElsewhereImage, run: SuiteRun, gpus: GpuSelection) -> tuple[Finding, ...]:
    findings = judge_run(image.promise, run, Surroundings(gpus=gpus))
    if run.finished or not run.python:
        return findings
    planned = len(plan_gates(image.promise, gpus))
    cut = finding(
        "collected-cut",
        Verdict.ERROR,
        f"the output ends before the suite did: {len(run.results)} of {planned} gates have a result",
        measured=f"{counted(len(run.results), 'gate')} with a result",
        required=counted(planned, "gate"),
        details={"log": run.log[-_SHOWN_LOG:]} if run.log else {},
    )
    # In place of what an end before its time says of a container that was started here.
    return (cut, *(found for found in findings if found.code != "container-exited"))


def _obstacle(bound: Bound | None, image: ElsewhereImage, output: SuiteOutput, size: int) -> Finding | None:
    """Why the output says nothing of this image, or None."""
    if bound is None:
        if output.python_too_old:
            what = f"the image's Python is {output.python_too_old}, the suite needs 3.9 or newer"
            return finding("python-too-old-for-suite", Verdict.ERROR, what, measured=output.python_too_old)
        return finding(
            "collected-unreadable",
            Verdict.ERROR,
            "the file holds no run of the suite that says which image it was of",
            measured=f"{counted(size, 'byte')}, {counted(len(output.results), 'gate')} with a result",
            details={"log": output.log[-_SHOWN_LOG:]} if output.log else {},
        )
    if not bound.of_image(image.config_digest, image.diff_ids):
        return finding(
            "collected-other-image",
            Verdict.ERROR,
            f"the output is of another image: {bound.image}, which ran as {bound.runs}",
            measured=bound.config_digest or f"layers {bound.layers}",
            required=image.config_digest or image.reference,
        )
    if bound.suite_sha256 != suite_sha256():
        return finding(
            "collected-other-suite",
            Verdict.ERROR,
            "the output is of another version of the suite",
            measured=bound.suite_sha256,
            required=suite_sha256(),
        )
    if bound.promise_sha256 != promise_digest(image.promise):
        return finding(
            "collected-other-promise",
            Verdict.ERROR,
            "spec, lock or labels promise something else than when the run was emitted",
            measured=bound.promise_sha256,
            required=promise_digest(image.promise),
        )
    return None


def _bound(output: SuiteOutput) -> Bound | None:
    try:
        bound = Bound.model_validate(output.bound)
        parse_gpus(bound.gpus)
    except (ValidationError, UsageError):
        return None
    return bound


def _last_run(content: bytes) -> SuiteOutput:
    """The last run in the output: a job may have been tried several times."""
    output = SuiteOutput()
    for line in _lines(content):
        if _begins(line):
            output = SuiteOutput()
        output.feed(line + b"\n")
    output.close()
    return output


def _begins(line: bytes) -> bool:
    if not line.startswith(MARK):
        return False
    try:
        event = json.loads(line[len(MARK) :])
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("event") == "suite"


def _lines(content: bytes) -> Iterable[bytes]:
    """Lines as the suite wrote them, without what a log's reader put before them."""
    for mark, encoding in _ENCODINGS:
        if content.startswith(mark):
            content = content.decode(encoding, "replace").encode()
            break
    for line in content.removesuffix(b"\n").split(b"\n"):
        start = line.find(MARK)
        yield line[start:].rstrip(b"\r") if start >= 0 else line
