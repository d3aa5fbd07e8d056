"""Documents attached to a published image: its SBOM, and reports of what was judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from stackbuild.annotate.annotations import COMPLETE, CONFIG, CREATED, GPUS, STARTED, VERDICT
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.referrers import Referrer, attach, attached_content, list_referrers
from stackbuild.registry.writer import RegistryWriter
from stackbuild.reports.interface import Report
from stackbuild.reports.json_report import render_json
from stackbuild.reports.summary import leading_verdict
from stackbuild.verification.model import VerificationReport

SBOM_TYPE = "application/vnd.cyclonedx+json"
VERIFICATION_TYPE = "application/vnd.stackbuild.verification.v1+json"
SCAN_TYPE = "application/vnd.stackbuild.scan.v1+json"
_DEVICES = "devices-as-reserved"  # the gate whose details list what CUDA showed


@dataclass(frozen=True)
class Attachment:
    """A document to attach.

    Attributes:
        type: Artifact and media type.
        name: Its file name.
        content: The document.
        annotations: What a reader learns without fetching it.
    """

    type: str
    name: str
    content: bytes
    annotations: Mapping[str, str]


@dataclass(frozen=True)
class AttachedReport:
    """A verification report that is attached, and what its referrer says of it."""

    report: VerificationReport
    referrer: Referrer


def sbom_attachment(document: bytes, config_digest: str) -> Attachment:
    """The SBOM of an image.

    Args:
        document: CycloneDX JSON.
        config_digest: Of the image it is of.
    """
    stamped = json.loads(document).get("metadata", {}).get("timestamp", "")
    annotations = {CONFIG: config_digest}
    if stamped:
        annotations[CREATED] = str(stamped)
    return Attachment(SBOM_TYPE, "sbom.cdx.json", document, annotations)


def report_attachment(
    type_: str, report: Report, *, started: str, config_digest: str, gpus: tuple[str, ...] = ()
) -> Attachment:
    """A report.

    Args:
        type_: ``VERIFICATION_TYPE`` or ``SCAN_TYPE``.
        report: The report.
        started: When it was judged, RFC 3339.
        config_digest: Of the image it is of.
        gpus: Compute capabilities it was judged on, as sm_80.
    """
    annotations = {
        CONFIG: config_digest,
        VERDICT: str(leading_verdict(report.findings)),
        COMPLETE: "true" if report.complete else "false",
        STARTED: started,
        CREATED: started,
    }
    if gpus:
        annotations[GPUS] = " ".join(gpus)
    name = "scan.json" if type_ == SCAN_TYPE else "verification.json"
    return Attachment(type_, name, render_json(report).encode(), annotations)


def verification_attachment(report: VerificationReport, config_digest: str) -> Attachment:
    """A verification's report; an earlier result that was remembered is the same document."""
    plain = report.model_copy(update={"cached": False})
    return report_attachment(
        VERIFICATION_TYPE,
        plain,
        started=report.started,
        config_digest=config_digest,
        gpus=judged_gpus(report),
    )


def attach_document(
    writer: RegistryWriter, repository: str, subject: Mapping[str, Any], document: Attachment
) -> str:
    """Attach a document to a manifest; returns the digest of what was attached.

    Args:
        writer: Writes the registry.
        repository: The repository.
        subject: Descriptor of the manifest.
        document: The document.
    """
    return attach(
        writer,
        repository,
        subject,
        artifact_type=document.type,
        content=document.content,
        media_type=document.type,
        name=document.name,
        annotations=document.annotations,
    )


def attached_reports(client: RegistryClient, repository: str, digest: str) -> tuple[AttachedReport, ...]:
    """The verification reports attached to a manifest that this version can read."""
    found = []
    for referrer in list_referrers(client, repository, digest):
        if referrer.artifact_type != VERIFICATION_TYPE:
            continue
        try:
            report = VerificationReport.model_validate_json(attached_content(client, repository, referrer))
        except ValidationError:
            continue  # of another version: it counts for nothing here
        found.append(AttachedReport(report, referrer))
    return tuple(found)


def judged_gpus(report: VerificationReport) -> tuple[str, ...]:
    """The compute capabilities that a report was judged on, as ``sm_80``; empty for one without a GPU.

    They are those of the devices that CUDA showed inside the container, not what was asked for.
    """
    found = {
        name
        for finding in report.findings
        if finding.code == _DEVICES
        for device in finding.details.get("devices") or ()
        if (name := architecture_of(str(device.get("compute_capability") or ""))) is not None
    }
    return tuple(sorted(found, key=lambda name: int(name.removeprefix("sm_"))))


def architecture_of(text: str) -> str | None:
    """``sm_80`` of ``8.0``, ``80`` or ``sm_80``; None when it is no compute capability."""
    plain = text.strip().lower().removeprefix("sm_").replace(".", "")
    return f"sm_{int(plain)}" if plain.isdigit() and 2 <= len(plain) <= 3 else None
