"""Judging the image of a night: what is in it, and what it does when it runs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from stackbuild.engine.docker_engine import Engine
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import Lock
from stackbuild.nightly.aging import aging_findings
from stackbuild.nightly.ground import Ground, NightOptions
from stackbuild.nightly.notes import Notes
from stackbuild.reports.document import document_of
from stackbuild.reports.html_report import render_html
from stackbuild.reports.json_report import render_json
from stackbuild.reports.verification import document_of_verification
from stackbuild.scan.expectations import expectations_of_stack, with_stack_and_site
from stackbuild.scan.gates.judge import judge_scan
from stackbuild.scan.report import ScanReport, scan_report
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.engine import EngineSource
from stackbuild.spec.model import Platform, StackSpec
from stackbuild.store.store import Store
from stackbuild.verification.acceptance import with_acceptance
from stackbuild.verification.gpus import default_gpus
from stackbuild.verification.model import VerificationReport
from stackbuild.verification.target import target_of_spec
from stackbuild.verification.verify import VerifyOptions, verify_image


def judge_image(
    engine: Engine,
    image: str,
    spec_path: Path,
    platform: Platform,
    ground: Ground,
    options: NightOptions,
    notes: Notes,
    *,
    tars: Store,
    runs_on: str = "",
) -> None:
    """Scan an image and run it, and note what is found.

    Args:
        engine: Has it.
        image: Its name or id.
        spec_path: Its stack's spec, whose lock, target and waivers it is held against.
        platform: Its platform.
        ground: What the night works with.
        options: How it is run.
        notes: Where findings, times and reports go.
        tars: Where tars of layers may be.
        runs_on: The engine's platform where the image is for another, and so is scanned but not run; else empty.

    Raises:
        InterruptedRunError: The person stopped the run.
    """
    with notes.stage("scan"):
        report = _scanned(engine, image, spec_path, ground, tars)
        notes.judged(report.findings)
        notes.documents["scan.json"] = render_json(report).encode()
        notes.documents["scan.html"] = render_html(document_of(report)).encode()
        notes.found["size"] = sum(layer.size for layer in report.layers)
    if runs_on:
        notes.judged([not_verified(image, platform, runs_on)])
        return
    with notes.stage("verify"):
        verified = _verified(engine, image, spec_path, platform, ground, options)
        notes.judged(verified.findings)
        notes.documents["report.json"] = render_json(verified).encode()
        notes.documents["report.html"] = render_html(document_of_verification(verified)).encode()


def not_verified(image: str, platform: Platform, runs_on: str) -> Finding:
    """What is said of an image that nobody ran: it is for another platform than the engine's.

    Args:
        image: Its name.
        platform: Its platform.
        runs_on: The engine's.
    """
    return Finding(
        code="platform-not-verified",
        verdict=Verdict.SKIP,
        subject=image,
        measured=runs_on,
        required=platform,
        summary=f"not verified for {platform}: this engine runs {runs_on}",
        next_step=f"Run a night on a machine for {platform} as well.",
    )


def _scanned(engine: Engine, image: str, spec_path: Path, ground: Ground, tars: Store) -> ScanReport:
    source = EngineSource(engine, image, store=tars)
    # Layers that were read before are the same by their diff IDs.
    scan = scan_of(scan_image(source, ground.observer, store=ground.store))
    platform = scan.files.description.platform
    expected, waivers = expectations_of_stack(spec_path, platform, ground.facts)
    findings = judge_scan(scan, expected, ground.facts, ground.today)
    return scan_report(scan, with_stack_and_site(findings, waivers, ground.site.policy, ground.today))


def _verified(
    engine: Engine, image: str, spec_path: Path, platform: Platform, ground: Ground, options: NightOptions
) -> VerificationReport:
    """Whatever was found for the same inputs before: drivers and devices change as well."""
    target = target_of_spec(spec_path, image, platform)
    gpus = options.gpus if options.gpus is not None else default_gpus(target.promise.device)
    asked = VerifyOptions(gpus=gpus, fresh=True)
    # Memory and time are measured: stacks that are judged at the same time take turns at the GPUs.
    turn = nullcontext() if gpus.none else ground.store.lock("nightly gpus", observer=ground.observer)
    with turn:
        report = verify_image(engine, image, target.promise, asked, ground.observer)
    return with_acceptance(report, target.waivers, ground.site.policy, ground.today)


def aging_of(spec: StackSpec, lock: Lock | None, ground: Ground) -> tuple[Finding, ...]:
    """What of a stack is past its date or soon will be, with its waivers and the site's severities."""
    policy = ground.site.policy
    findings = aging_findings(
        spec, lock, ground.facts, ground.today, tolerance_days=policy.eol_tolerance_days
    )
    return with_stack_and_site(findings, spec.waivers, policy, ground.today)
