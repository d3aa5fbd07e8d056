"""Scanning as a judge of what is published: what is in the image, without starting it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stackbuild.facts.tables import Facts
from stackbuild.progress import Observer
from stackbuild.publish.attachments import SCAN_TYPE, report_attachment
from stackbuild.publish.judging import Judged
from stackbuild.publish.push import RemoteManifest
from stackbuild.scan.expectations import expectations_of_stack, with_stack_and_site
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.open_source import open_source
from stackbuild.scan.report import scan_report
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store


@dataclass(frozen=True)
class Scanning:
    """Runs the static gates on what is in the image.

    Attributes:
        site: Mirrors and severities.
        store: Remembers scanned layers.
        spec_path: The image's stack, whose lock, target and waivers it is held against; None without one.
        from_registry: Read layers from the registry, not from the engine that pulled them. With the containerd
            store a pull leaves out layers that the engine had unpacked before, and ``docker save`` does so then too
            (seen on 26.1).
    """

    site: SiteConfig
    store: Store
    spec_path: Path | None = None
    from_registry: bool = False

    @property
    def name(self) -> str:
        """The command that does the same."""
        return "scan"

    def judge(self, image: RemoteManifest, reference: str, observer: Observer) -> Judged:
        """Scan it."""
        now = datetime.now(UTC)
        with open_source(
            reference,
            site=self.site,
            store=self.store,
            observer=observer,
            platform=image.platform,
            registry=self.from_registry,
        ) as source:
            scan = scan_of(scan_image(source, observer, store=self.store))
        facts = Facts()
        expected, waivers = (
            expectations_of_stack(self.spec_path, image.platform, facts)
            if self.spec_path is not None
            else (Expectations(), ())
        )
        findings = judge_scan(scan, expected, facts, now.date())
        findings = with_stack_and_site(findings, waivers, self.site.policy, now.date())
        report = scan_report(scan, findings)
        started = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        return Judged(
            report, report_attachment(SCAN_TYPE, report, started=started, config_digest=image.config_digest)
        )
