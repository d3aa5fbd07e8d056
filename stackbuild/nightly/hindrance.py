"""What keeps a stack from being rebuilt: only inputs that cannot be had at all, each by its name."""

from __future__ import annotations

from collections.abc import Iterable

from stackbuild.counting import some_of
from stackbuild.findings import Finding, Verdict
from stackbuild.spec.model import Platform

# A publisher who withdraws a file has said what he thinks of it; indexes go on serving it (PEP 592).
_STILL_SERVED = "wheel-yanked"
# Trouble of image registries keeps no rebuild from beginning: mostly the engine has the base.
_OF_REGISTRIES = "registry-"
_MOST_NAMES = 5  # in one sentence


def hindrance(findings: Iterable[Finding], platform: Platform, *, base: str = "") -> str:
    """Why a platform cannot be rebuilt from its locked inputs, as a part of a sentence; empty when it can.

    Args:
        findings: Of ``check_inputs``.
        platform: The platform; what others miss hinders only them.
        base: The base that the engine has, as findings name it: nothing of it need be fetched. Empty for none.
    """
    gone, unasked = list[str](), list[str]()
    for finding in findings:
        if finding.details.get("platform", platform) != platform:
            continue
        if finding.verdict is Verdict.FAIL and not _served(finding) and finding.subject != base:
            gone.append(finding.subject)
        if finding.verdict is Verdict.ERROR and not finding.code.startswith(_OF_REGISTRIES):
            unasked.append(finding.subject)
    parts = []
    if gone:
        parts.append(f"{_names(gone)} cannot be had as locked")
    if unasked:
        parts.append(f"{_names(unasked)} could not be asked")
    return "; ".join(parts)


def _served(finding: Finding) -> bool:
    """Whether what a FAIL is about can be had all the same."""
    details = finding.details
    return (
        finding.code == _STILL_SERVED
        or details.get("locked-digest-served") is True
        or details.get("found") == "snapshot"
    )


def _names(subjects: Iterable[str]) -> str:
    return some_of(dict.fromkeys(subjects), _MOST_NAMES)
