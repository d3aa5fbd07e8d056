"""Reports that other machines attached: fresh, complete, passed, and of this very image; else nothing is tagged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.publish.attachments import (
    AttachedReport,
    architecture_of,
    judged_gpus,
    verification_attachment,
)
from stackbuild.publish.judging import required_reports
from stackbuild.publish.push import RemoteManifest
from stackbuild.registry.referrers import Referrer
from stackbuild.verification.model import HostBasics, JudgedImage, VerificationReport
from stackbuild.verification.promise import Promise

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
CONFIG, MANIFEST, LAYER = (f"sha256:{letter * 64}" for letter in "abc")
IMAGE = RemoteManifest("linux/amd64", MANIFEST, 100, CONFIG, (LAYER,), {}, {})


def finding(code: str, verdict: Verdict = Verdict.PASS, **more: Any) -> Finding:
    return Finding(code=code, verdict=verdict, summary="as it is", **more)


def report(
    *findings: Finding,
    capability: str | None = "9.0",
    hours_ago: float = 1,
    gpus: str = "all",
    **image: Any,
) -> AttachedReport:
    listed = list(findings) or [finding("torch-matmul")]
    if capability is not None:
        listed.append(
            finding("devices-as-reserved", details={"devices": [{"compute_capability": capability}]})
        )
    fields = {"reference": "r", "id": CONFIG, "diff_ids": (LAYER,), "platform": "linux/amd64", **image}
    made = VerificationReport(
        image=JudgedImage(**fields),
        promise=Promise(source="labels"),
        promise_sha256="0" * 64,
        suite_version="1",
        suite_sha256="0" * 64,
        host=HostBasics(engine="20.10"),
        gpus=gpus,
        started=(NOW - timedelta(hours=hours_ago)).isoformat().replace("+00:00", "Z"),
        seconds=1.0,
        findings=tuple(listed),
        complete=is_complete(listed),
    )
    return AttachedReport(made, Referrer("sha256:" + "d" * 64, "t"))


def judged(
    *reports: AttachedReport, require: tuple[str, ...] = ("sm_90",), strict: bool = False
) -> list[tuple[str, Verdict]]:
    found = required_reports(IMAGE, reports, require, now=NOW, max_age=timedelta(hours=24), strict=strict)
    return [(entry.code, entry.verdict) for entry in found]


def test_each_required_gpu_needs_a_report_of_its_own() -> None:
    both = [report(), report(capability="8.0")]
    assert judged(*both, require=("sm_80", "sm_90")) == [("required-report", Verdict.PASS)] * 2
    assert judged(*both, require=("sm_86",)) == [("required-report", Verdict.ERROR)]
    assert judged(*both, require=("cpu",)) == [("required-report", Verdict.ERROR)]
    without = report(capability=None, gpus="none")
    assert judged(without, require=("cpu",)) == [("required-report", Verdict.PASS)]
    assert judged(report(capability=None), require=("cpu",)) == [("required-report", Verdict.ERROR)]


def test_a_failure_before_a_gpu_was_seen_is_told() -> None:
    refused = finding("driver-too-old", Verdict.FAIL)
    blind = report(refused, capability=None)
    assert judged(report(), blind) == [("required-report", Verdict.PASS), ("required-report", Verdict.WARN)]
    assert judged(report(), report(refused, capability=None, hours_ago=25)) == [
        ("required-report", Verdict.PASS)
    ]
    assert judged(blind, report(capability=None, gpus="none"), require=("cpu",)) == [
        ("required-report", Verdict.PASS),
        ("required-report", Verdict.WARN),
    ]


@pytest.mark.parametrize(
    ("reports", "verdict"),
    [
        ([report(finding("torch-matmul", Verdict.FAIL))], Verdict.FAIL),
        ([report(finding("torch-matmul", Verdict.SKIP))], Verdict.ERROR),
        ([report(finding("torch-matmul", Verdict.ERROR))], Verdict.ERROR),
        ([report(hours_ago=25)], Verdict.ERROR),
        ([report(finding("torch-matmul", Verdict.WARN))], Verdict.PASS),
        # The newest decides, whichever way.
        ([report(hours_ago=3), report(finding("torch-matmul", Verdict.FAIL), hours_ago=2)], Verdict.FAIL),
        ([report(finding("torch-matmul", Verdict.FAIL), hours_ago=3), report(hours_ago=2)], Verdict.PASS),
    ],
)
def test_a_report_must_be_fresh_complete_and_passed(reports: list[AttachedReport], verdict: Verdict) -> None:
    assert judged(*reports) == [("required-report", verdict)]


def test_the_next_step_can_be_run_as_it_stands() -> None:
    (missing,) = required_reports(
        IMAGE,
        [],
        ["sm_80"],
        now=NOW,
        max_age=timedelta(hours=24),
        strict=False,
        repository="r.example/team/app",
    )
    command = f"stackbuild verify r.example/team/app@{MANIFEST} --attach"
    assert missing.next_step == f"On a host with sm_80: {command}"


def test_strict_takes_no_warning() -> None:
    warned = report(finding("torch-matmul", Verdict.WARN))
    assert judged(warned, strict=True) == [("required-report", Verdict.FAIL)]


@pytest.mark.parametrize(
    "image", [{"diff_ids": ("sha256:" + "e" * 64,)}, {"id": "sha256:" + "e" * 64}, {"diff_ids": ()}]
)
def test_a_report_of_another_image_counts_for_nothing(image: dict[str, Any]) -> None:
    assert judged(report(**image)) == [
        ("required-report", Verdict.ERROR),
        ("report-not-of-this-image", Verdict.ERROR),
    ]


def test_the_gpus_are_those_that_were_there() -> None:
    assert judged_gpus(report(capability="12.0").report) == ("sm_120",)
    elsewhere = finding("arch-not-covered", details={"devices": [{"compute_capability": "8.0"}]})
    assert judged_gpus(report(elsewhere, capability=None).report) == ()
    annotations = verification_attachment(report().report, CONFIG).annotations
    assert annotations["io.stackbuild.gpus"] == "sm_90"
    assert (annotations["io.stackbuild.verdict"], annotations["io.stackbuild.complete"]) == ("PASS", "true")


@pytest.mark.parametrize(
    ("text", "name"),
    [("8.0", "sm_80"), ("sm_120", "sm_120"), ("90", "sm_90"), ("H100", None), ("", None), ("9", None)],
)
def test_compute_capabilities_are_read_as_people_write_them(text: str, name: str | None) -> None:
    assert architecture_of(text) == name
