"""Reported failures, on the files of an image: each case is a file in ``cases/``."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from stackbuild.compat.offer import described_offer
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.scan.gates.judge import Expectations, judge_scan
from stackbuild.scan.scan import scan_of
from tests.support.elf import make_elf, make_fatbin
from tests.support.layer_tars import Content, image_files

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


def content(value: dict[str, Any]) -> Content:
    if "link" in value:
        return f"-> {value['link']}"
    if "elf" in value:
        code = "cubins" in value or "ptx" in value
        fatbin = make_fatbin(cubins=value.get("cubins", ()), ptx=value.get("ptx", ())) if code else b""
        return make_elf(**value["elf"], fatbin=fatbin)
    return str(value["text"])


def with_folders(files: dict[str, Content]) -> dict[str, Content]:
    """As real layers have them: each folder an entry before what is in it."""
    whole: dict[str, Content] = {}
    for path, value in files.items():
        parts = path.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            folder = "/".join(parts[:end])
            if folder not in files:
                whole.setdefault(folder, None)
        whole[path] = value
    return whole


def judged(case: dict[str, Any]) -> tuple[Finding, ...]:
    layers = [
        with_folders({path: content(value) for path, value in layer.items()}) for layer in case["layers"]
    ]
    files = image_files(*layers, Env=[f"{name}={value}" for name, value in case["env"].items()])
    facts = Facts()
    target = described_offer(None, case["gpus"], facts) if "gpus" in case else None
    return judge_scan(scan_of(files), Expectations(target, case.get("expected")), facts, date(2026, 11, 30))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_reported_failure(path: Path):
    case = json.loads(path.read_text(encoding="utf-8"))
    findings = judged(case)
    for wanted in case["expect"]:
        (found,) = [
            finding
            for finding in findings
            if finding.code == wanted["code"] and finding.subject == wanted["subject"]
        ]
        assert found.verdict == Verdict(wanted["verdict"])
        assert wanted.get("measured", found.measured) == found.measured
        assert wanted.get("note") == found.details.get("note")
        assert wanted.get("missing", found.details.get("missing")) == found.details.get("missing")
        if found.verdict is Verdict.FAIL:
            assert found.next_step
            assert wanted.get("next_step", "") in found.next_step
    for code, count in case.get("count", {}).items():
        assert len([finding for finding in findings if finding.code == code]) == count
    for capability, libraries in case.get("covered", {}).items():
        passed = [
            library
            for finding in findings
            if finding.code == "arch-not-covered"
            and finding.subject.endswith(f"compute capability {capability}")
            for library in finding.details.get("libraries", ())
        ]
        assert sorted(passed) == sorted(libraries)
    if case.get("no_fail"):
        assert [finding for finding in findings if finding.verdict is Verdict.FAIL] == []
