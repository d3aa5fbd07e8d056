"""Scanning as a judge of what is published: what is in the image, without starting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stackbuild.compat.offer import target_offer
from stackbuild.compat.policy import with_severities, with_waivers
from stackbuild.facts.tables import Facts
from stackbuild.lock.file import read_lock
from stackbuild.lock.path import lock_path
from stackbuild.progress import Observer
from stackbuild.publish.attachments import SCAN_TYPE, report_attachment
from stackbuild.publish.judging import Judged
from stackbuild.publish.push import RemoteManifest
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.open_source import open_source
from stackbuild.scan.report import scan_report
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import load_spec
from stackbuild.spec.model import Waiver
from stackbuild.store.store import Store


@dataclass(frozen=True)
class Scanning:
    """Runs the static gates on what is in the image.

    Attributes:
        site: Mirrors and severities.
        store: Remembers scanned layers.
        spec_path: The image's stack, whose lock, target and waivers it is held against; None without one.
    """

    site: SiteConfig
    store: Store
    spec_path: Path | None = None

    @property
    def name(self) -> str:
        """The command that does the same."""
        return "scan"

    def judge(self, image: RemoteManifest, reference: str, observer: Observer) -> Judged:
        """Scan it."""
        now = datetime.now(UTC)
        with open_source(
            reference, site=self.site, store=self.store, observer=observer, platform=image.platform
        ) as source:
            scan = scan_of(scan_image(source, observer, store=self.store))
        facts = Facts()
        expected, waivers = self._expectations(image.platform, facts)
        findings = judge_scan(scan, expected, facts, now.date())
        codes = {finding.code for finding in findings}
        concerned = [waiver for waiver in waivers if waiver.code in codes]
        findings = with_severities(with_waivers(findings, concerned, now.date()), self.site.policy)
        report = scan_report(scan, findings)
        started = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        return Judged(
            report, report_attachment(SCAN_TYPE, report, started=started, config_digest=image.config_digest)
        )

    def _expectations(self, platform: str, facts: Facts) -> tuple[Expectations, Sequence[Waiver]]:
        """What the stack's spec and lock ask of the image."""
        if self.spec_path is None:
            return Expectations(), ()
        spec = load_spec(self.spec_path).spec
        target = target_offer(spec.target, facts) if spec.target.gpus or spec.target.driver else None
        distributions: dict[str, str] | None = None
        if spec.external is None:
            locked = dict(read_lock(lock_path(self.spec_path)).platforms).get(platform)  # type: ignore[call-overload]
            if locked is not None:
                distributions = {wheel.name: wheel.version for wheel in locked.wheels}
        return Expectations(target, distributions), spec.waivers
