"""What must hold before an image gets its tags: judged here, or by reports that GPU jobs attached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from stackbuild.engine.docker_engine import Engine
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.progress import Observer
from stackbuild.publish.attachments import AttachedReport, Attachment, judged_gpus, verification_attachment
from stackbuild.publish.push import RemoteManifest
from stackbuild.reports.interface import Report
from stackbuild.reports.summary import counts, leading_verdict, not_judged
from stackbuild.site_policy import Policy
from stackbuild.store.store import Store
from stackbuild.verification.gpus import GpuSelection, default_gpus
from stackbuild.verification.model import VerificationReport
from stackbuild.verification.target import VerifyTarget

CPU = "cpu"  # a required report of a run without GPU


@dataclass(frozen=True)
class Judged:
    """One judge's answer.

    Attributes:
        report: What it found.
        attachment: The same as a document to attach.
    """

    report: Report
    attachment: Attachment


class Judge(Protocol):
    """Judges an image that was pulled back from the registry."""

    @property
    def name(self) -> str:
        """What it is called in the progress."""

    def judge(self, image: RemoteManifest, reference: str, observer: Observer) -> Judged:
        """Judge it.

        Args:
            image: What the registry holds.
            reference: Its name in the engine, by digest.
            observer: Told what is going on.
        """


@dataclass(frozen=True)
class Verifying:
    """Runs the verification suite in the image, always: what is attached tells of this machine and this hour.

    Attributes:
        engine: Has the image.
        store: Remembers the result for others; none is taken from it.
        target: What the image promises, and the waivers that hold.
        policy: The site's severities.
        gpus: GPUs to reserve; None for what the image promises.
    """

    engine: Engine
    store: Store
    target: VerifyTarget
    policy: Policy
    gpus: GpuSelection | None = None

    @property
    def name(self) -> str:
        """The command that does the same."""
        return "verify"

    def judge(self, image: RemoteManifest, reference: str, observer: Observer) -> Judged:
        """Verify it."""
        from stackbuild.verification.acceptance import with_acceptance
        from stackbuild.verification.verify import VerifyOptions, verify_image

        gpus = self.gpus if self.gpus is not None else default_gpus(self.target.promise.device)
        # An earlier result may be of another GPU behind an engine of the same id, and is too old one day.
        options = VerifyOptions(gpus=gpus, fresh=True)
        report = verify_image(
            self.engine, reference, self.target.promise, options, observer, store=self.store
        )
        if self.target.waivers or self.policy.severities:
            report = with_acceptance(report, self.target.waivers, self.policy, datetime.now(UTC).date())
        return Judged(report, verification_attachment(report, image.config_digest))


def judge_completeness(judged: Sequence[Judged]) -> Finding:
    """Whether anything that applies was left unjudged: an incomplete result is never published."""
    findings = [finding for answer in judged for finding in answer.report.findings]
    gaps = not_judged(findings)
    if is_complete(findings):
        return Finding(
            code="publish-incomplete",
            verdict=Verdict.PASS,
            summary=f"every gate that applies was judged ({counts(findings)})",
        )
    return Finding(
        code="publish-incomplete",
        verdict=Verdict.ERROR,
        summary="gates that apply were not judged, so nothing was tagged",
        measured=f"not judged: {', '.join(gaps)}",
        required="a complete result",
        next_step="Judge it where those gates can run: publish --stage here, verify REF --attach there, "
        "and publish --require.",
    )


def required_reports(
    image: RemoteManifest,
    attached: Sequence[AttachedReport],
    required: Sequence[str],
    *,
    now: datetime,
    max_age: timedelta,
    strict: bool,
    repository: str = "REPOSITORY",
) -> tuple[Finding, ...]:
    """One finding for each required GPU: its newest attached report must be fresh, complete and passed.

    Args:
        image: The image in the registry.
        attached: The reports attached to it.
        required: Compute capabilities as sm_80, or ``cpu`` for a run without GPU.
        now: The time.
        max_age: How old a report may be.
        strict: A WARN fails.
        repository: Where the image is, for the next step.
    """
    bound = [entry for entry in attached if _is_of(entry, image)]
    foreign = len(attached) - len(bound)
    command = f"stackbuild verify {repository}@{image.digest} --attach"
    found = [_required(name, image, bound, now, max_age, strict=strict, command=command) for name in required]
    found += [
        _of_no_known_gpu(entry.report, image)
        for entry in bound
        if _failed_before_a_gpu(entry.report) and _age(entry.report, now) <= max_age
    ]
    if foreign:
        found.append(
            Finding(
                code="report-not-of-this-image",
                verdict=Verdict.ERROR,
                subject=image.platform,
                summary=f"{foreign} attached report{'s are' if foreign > 1 else ' is'} of another image",
                measured="other layers or another configuration than the manifest it is attached to",
                required=image.config_digest,
                next_step="Find out which job attached it; verify REPOSITORY@DIGEST --attach binds a report to what "
                "it judged.",
            )
        )
    return tuple(found)


def _is_of(entry: AttachedReport, image: RemoteManifest) -> bool:
    judged = entry.report.image
    return judged.diff_ids == image.diff_ids and judged.id in (image.config_digest, image.digest)


def _judged_on(report: VerificationReport) -> tuple[str, ...]:
    """The compute capabilities that a report is of, or ``cpu``; empty for one that was to see a GPU and did not."""
    return judged_gpus(report) or ((CPU,) if report.gpus == str(GpuSelection()) else ())


def _failed_before_a_gpu(report: VerificationReport) -> bool:
    return not _judged_on(report) and leading_verdict(report.findings) is Verdict.FAIL


def _of_no_known_gpu(report: VerificationReport, image: RemoteManifest) -> Finding:
    """A failure that no required GPU's report shows, since the container did not get as far as naming its GPU."""
    failed = dict.fromkeys(f.code for f in report.findings if f.verdict is Verdict.FAIL)
    return Finding(
        code="required-report",
        verdict=Verdict.WARN,
        subject=f"unknown GPU {image.platform}",
        summary=f"on a host whose GPU is not known it failed: {', '.join(failed)}",
        measured=report.started,
        required="no failure on any host",
        next_step="See that report (stackbuild inspect); if the host is to run the image, mend the host or the image.",
    )


def _required(
    name: str,
    image: RemoteManifest,
    reports: Sequence[AttachedReport],
    now: datetime,
    max_age: timedelta,
    *,
    strict: bool,
    command: str,
) -> Finding:
    def answer(verdict: Verdict, summary: str, measured: str = "", next_step: str = "") -> Finding:
        return Finding(
            code="required-report",
            verdict=verdict,
            subject=f"{name} {image.platform}",
            summary=summary,
            measured=measured,
            required=f"a complete report that passed, not older than {_hours(max_age)}",
            next_step=next_step,
        )

    again = "On " + ("a host" if name == CPU else f"a host with {name}") + f": {command}"
    matching = [entry for entry in reports if name in _judged_on(entry.report)]
    if not matching:
        return answer(Verdict.ERROR, f"no report of {name} is attached", "none", again)
    # The newest decides: a failure after a pass is a failure.
    report = max((entry.report for entry in matching), key=lambda report: report.started)
    age = _age(report, now)
    verdict = leading_verdict(report.findings)
    if verdict is Verdict.FAIL or (strict and verdict is Verdict.WARN):
        failed = ", ".join(
            dict.fromkeys(
                finding.code
                for finding in report.findings
                if finding.verdict is Verdict.FAIL or (strict and finding.verdict is Verdict.WARN)
            )
        )
        return answer(Verdict.FAIL, f"the report of {name} failed: {failed}", str(verdict), "Mend the image.")
    if not report.complete:
        gaps = ", ".join(not_judged(report.findings)) or "a part of the gates was selected"
        return answer(Verdict.ERROR, f"the report of {name} is not complete: {gaps}", "incomplete", again)
    if age > max_age:
        return answer(Verdict.ERROR, f"the report of {name} is {_hours(age)} old", _hours(age), again)
    return answer(Verdict.PASS, f"{name}: {verdict}, judged {report.started}", report.started)


def _age(report: VerificationReport, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(report.started)


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.0f} h"
