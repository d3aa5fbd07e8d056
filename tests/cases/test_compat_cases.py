"""Failures that people reported, each with the verdict it should have had; one data file a case."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.compat.architecture import coverage, covering_variants
from stackbuild.compat.contents import Contents, Distribution, contents_of_spec
from stackbuild.compat.judge import HostJudge, judge_image
from stackbuild.compat.needs import compat_library, needs
from stackbuild.compat.versions import parse_compute_capability, parse_cuda
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.host.model import Host
from stackbuild.host.offer import host_offer
from stackbuild.spec.model import StackSpec

FACTS = Facts()
TODAY = date(2026, 11, 30)
CASES = sorted((Path(__file__).parent / "data").glob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(path)
    return loaded


def contents(case: dict[str, Any]) -> Contents:
    if "spec" in case:
        return contents_of_spec(StackSpec.model_validate(case["spec"]), FACTS)
    image = case.get("image", {})
    repository, _, tag = image.get("base", "").partition(":")
    pinned = [item.split("==") for item in image.get("distributions", ())]
    probe = Contents("probe", base_image=repository, base_tag=tag)
    cuda = image.get("base-cuda") or (probe.tag.release if probe.tag else None)
    compat = image.get("compat")
    return Contents(
        name="case",
        platform=image.get("platform", "linux/amd64"),
        base_image=repository,
        base_tag=tag,
        os=probe.tag.os if probe.tag else "",
        base_cuda=parse_cuda(str(cuda)) if cuda else None,
        environment=image.get("env", {}),
        distributions=tuple(
            Distribution(name, version, index=image.get("index", "")) for name, version in pinned
        ),
        locked=image.get("locked", False),
        compat=compat_library(compat["driver"], compat["cuda"], loaded_first=compat["loaded-first"])
        if compat
        else None,
        expects_gpu=image.get("expects-gpu", cuda is not None),
    )


def assert_answer(findings: tuple[Finding, ...], expected: dict[str, Any], ignore: list[str]) -> None:
    relevant = [finding for finding in findings if finding.code not in ignore]
    failing = [finding for finding in relevant if finding.verdict is Verdict.FAIL]
    warnings = [finding for finding in relevant if finding.verdict is Verdict.WARN]
    verdict = "FAIL" if failing else "WARN" if warnings else "PASS"
    shown = "\n".join(f"{finding.verdict} {finding.code}: {finding.summary}" for finding in relevant)
    if "verdict" in expected:
        assert verdict == expected["verdict"], shown
    if "code" not in expected:
        return
    wanted = expected.get("only", expected.get("verdict"))
    matching = [
        finding for finding in relevant if finding.code == expected["code"] and finding.verdict == wanted
    ]
    assert matching, shown
    texts = [f"{f.summary} {f.measured} {f.required} {f.next_step}" for f in matching]
    for text in expected.get("says", ()):
        assert any(text in said for said in texts), (text, texts)
    for text in expected.get("never-says", ()):
        assert not any(text in said for said in texts), (text, texts)
    for key, value in expected.get("details", {}).items():
        assert any(finding.details.get(key) == value for finding in matching), [f.details for f in matching]
    for code in expected.get("also", ()):
        assert code in {finding.code for finding in failing}, shown


def digest_of(tag: str, kind: str) -> str:
    return next(
        row.digest
        for row in FACTS.table("cuda_image_digests").rows
        if row.tag == tag and row.kind.startswith(kind)
    )


@pytest.mark.parametrize(
    "path", [path for path in CASES if "verdict" in read(path)], ids=lambda path: path.stem
)
def test_image(path: Path) -> None:
    case = read(path)
    subject = contents(case)
    digest = digest_of(subject.base_tag, case["digest-kind"]) if "digest-kind" in case else None
    findings = judge_image(subject, FACTS, TODAY, digest=digest, label=str(case.get("label", "")))
    assert_answer(findings, case, [*case.get("ignore", ()), "distribution-eol", "python-eol"])


@pytest.mark.parametrize(
    "path", [path for path in CASES if "hosts" in read(path)], ids=lambda path: path.stem
)
def test_image_on_hosts(path: Path) -> None:
    case = read(path)
    judge = HostJudge(FACTS)
    for row in case["hosts"]:
        host = host_offer(Host.model_validate(row["host"]), FACTS)
        assert_answer(judge.judge(needs(contents(case), FACTS), host), row, case.get("ignore", []))


@pytest.mark.parametrize(
    "path", [path for path in CASES if "coverage" in read(path)], ids=lambda path: path.stem
)
def test_coverage(path: Path) -> None:
    for row in read(path)["coverage"]:
        device = parse_compute_capability(row["device"])
        assert coverage(row["sm"], row["ptx"], device).how == row["how"], row
        if "variant-at-least" in row:
            assert covering_variants(device, FACTS)[0] == row["variant-at-least"]
