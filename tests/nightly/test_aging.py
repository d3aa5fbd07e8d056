"""What of a stack ages, said before it is too late, and nothing of other stacks."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from stackbuild.compat.base import judge_ages
from stackbuild.compat.contents import Contents
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding
from stackbuild.lock.model import Lock
from stackbuild.nightly.aging import aging_findings
from stackbuild.spec.model import StackSpec
from tests.lock.examples import lock, platform_lock, wheel

FACTS = Facts()
TODAY = date(2026, 11, 30)


def aging(today: date, locked: Lock | None = None, **changes: Any) -> list[Finding]:
    spec = StackSpec.model_validate(
        {
            "schema": 1,
            "name": "example",
            "base": {"image": "nvidia/cuda", "tag": "13.0.3-base-ubuntu24.04"},
            "python": "3.12",
            **changes,
        }
    )
    return list(aging_findings(spec, locked or lock(), FACTS, today))


def test_nothing_ages_today() -> None:
    assert aging(TODAY) == []


@pytest.mark.parametrize(
    ("today", "words"),
    [
        (date(2028, 8, 1), None),
        (date(2028, 8, 2), "Python 3.12 reaches its end of life on 2028-10-31, in 90 days."),
        (date(2028, 10, 31), "Python 3.12 reaches its end of life on 2028-10-31, in 0 days."),
        (date(2028, 11, 1), "Python 3.12 is past its end of life (2028-10-31)."),
    ],
)
def test_python(today: date, words: str | None) -> None:
    found = [finding for finding in aging(today) if finding.code == "python-eol"]
    assert [finding.summary for finding in found] == ([words] if words else [])
    assert all(finding.verdict == "WARN" for finding in found)


def test_a_distribution_past_its_end_under_nvidia_cuda_says_that_the_tag_will_go() -> None:
    (finding,) = [finding for finding in aging(date(2029, 6, 1)) if finding.code == "distribution-eol"]
    assert finding.summary == "ubuntu24.04 is past the end of its regular support (2029-05-31)."
    assert "NVIDIA removes such images" in finding.next_step


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (">=580.65", None),
        (">=590.10", "R590, which reaches its end of life in 2026-12"),
        (">=535.54", "R535, which reached its end of life in 2026-06"),
    ],
)
def test_the_branch_of_the_oldest_driver(driver: str, words: str | None) -> None:
    found = aging(TODAY, target={"driver": driver})
    assert [finding.code for finding in found] == (["driver-branch-eol"] if words else [])
    assert all(words and words in finding.summary for finding in found)


@pytest.mark.parametrize(("until", "when"), [("2026-12-14", "in 14 days"), ("2026-11-30", "today")])
def test_a_waiver_that_ends_soon(until: str, when: str) -> None:
    waiver = {"code": "arch-not-covered", "match": "x", "reason": "r", "owner": "o", "until": until}
    far = {**waiver, "until": "2026-12-15"}
    (finding,) = aging(TODAY, waivers=[waiver, far])
    assert (finding.code, finding.subject) == ("waiver-ends-soon", "arch-not-covered (x)")
    assert when in finding.summary


def test_only_facts_that_judge_this_stack() -> None:
    later = date(2027, 6, 1)
    plain = lock(platforms={"linux/amd64": platform_lock(wheels=(wheel("numpy"),))})
    assert {finding.subject for finding in aging(later)} == {
        "torch_releases",
        "toolkits",
        "gpus",
        "cuda_image_digests",
    }
    cpu = aging(later, plain, base={"bootstrap": "debian", "suite": "trixie"})
    assert [finding.code for finding in cpu] == []


def test_an_external_stack_has_no_lock() -> None:
    spec = StackSpec.model_validate(
        {"schema": 1, "name": "e", "external": "r.example/x:1", "target": {"driver": ">=535.54"}}
    )
    assert [finding.code for finding in aging_findings(spec, None, FACTS, TODAY)] == ["driver-branch-eol"]


def test_a_date_of_two_sources_is_measured_once() -> None:
    contents = Contents("example", os="debian12", python="3.11")
    (found,) = [one for one in judge_ages(contents, FACTS, TODAY) if one.code == "distribution-eol"]
    assert found.measured == "end of life 2026-07-11 (LTS 2028-06-30)"
