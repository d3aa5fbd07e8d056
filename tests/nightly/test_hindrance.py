"""Only what cannot be had at all keeps a stack from being rebuilt, and it is named."""

from __future__ import annotations

from typing import Any

import pytest

from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.hindrance import hindrance

BASE = "nvidia/cuda:13.0.3-base-ubuntu24.04"


def _finding(verdict: str, code: str, subject: str, **details: Any) -> Finding:
    return Finding(code=code, verdict=Verdict(verdict), summary=code, subject=subject, details=details)


@pytest.mark.parametrize(
    "finding",
    [
        _finding("PASS", "inputs-served", "wheels"),
        _finding("FAIL", "wheel-yanked", "leaf 1.0"),
        _finding("WARN", "deb-superseded", "tool 1.0", found="pool"),
        _finding("FAIL", "artifact-changed", "tool 1.0", found="snapshot"),
        _finding("FAIL", "tag-removed", BASE, **{"locked-digest-served": True}),
        _finding("WARN", "base-tag-moved", BASE),
        _finding("ERROR", "registry-rate-limited", BASE),
        _finding("FAIL", "broken-upstream", "leaf 1.0", platform="linux/arm64"),
        _finding("SKIP", "inputs-unplaced", "repository corp"),
    ],
)
def test_what_can_still_be_had_does_not_hinder(finding: Finding) -> None:
    assert hindrance([finding], "linux/amd64") == ""


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        (_finding("FAIL", "broken-upstream", "leaf 1.0"), "leaf 1.0 cannot be had as locked"),
        (_finding("FAIL", "artifact-changed", "leaf 1.0"), "leaf 1.0 cannot be had as locked"),
        (
            _finding("FAIL", "deb-superseded", "tool 1.0", found="nowhere"),
            "tool 1.0 cannot be had as locked",
        ),
        (_finding("FAIL", "digest-gone", BASE), f"{BASE} cannot be had as locked"),
        (
            _finding("FAIL", "tag-removed", BASE, **{"locked-digest-served": False}),
            f"{BASE} cannot be had as locked",
        ),
        (_finding("ERROR", "index-unreachable", "index default"), "index default could not be asked"),
    ],
)
def test_what_cannot_be_had_is_named(finding: Finding, why: str) -> None:
    assert hindrance([finding], "linux/amd64") == why


def test_a_base_that_the_engine_has_need_not_be_had() -> None:
    gone = _finding("FAIL", "digest-gone", BASE)
    assert hindrance([gone], "linux/amd64", base=BASE) == ""


def test_of_many_the_first_are_named() -> None:
    gone = [_finding("FAIL", "broken-upstream", f"leaf{number} 1.0") for number in range(8)]
    down = _finding("ERROR", "index-unreachable", "index corp")
    assert hindrance([*gone, gone[0], down], "linux/amd64") == (
        "leaf0 1.0, leaf1 1.0, leaf2 1.0, leaf3 1.0, leaf4 1.0 and 3 more cannot be had as locked; "
        "index corp could not be asked"
    )
