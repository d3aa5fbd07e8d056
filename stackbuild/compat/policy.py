"""Waivers and the site's policy: which findings are accepted, for how long, and how grave a code is here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from stackbuild.compat.contents import Contents
from stackbuild.findings import Finding, Verdict
from stackbuild.site_policy import Policy
from stackbuild.spec.model import Waiver


def judge_policy(contents: Contents, compatibility: str, policy: Policy) -> tuple[Finding, ...]:
    """Gates ``base-not-allowed``, ``index-not-allowed`` and ``compatibility-not-allowed``."""
    found: list[Finding] = []
    if policy.allowed_bases and contents.base_image and contents.base_image not in policy.allowed_bases:
        found.append(
            Finding(
                code="base-not-allowed",
                verdict=Verdict.FAIL,
                subject=contents.base_image,
                measured=contents.base_image,
                required=", ".join(policy.allowed_bases),
                summary=f"The site's policy does not allow {contents.base_image} as a base.",
                next_step="Use one of the allowed bases, or have the site's policy changed.",
            )
        )
    strays = sorted(
        {item.index for item in contents.distributions if item.index} - set(policy.allowed_indexes)
    )
    if policy.allowed_indexes and strays:
        found.append(
            Finding(
                code="index-not-allowed",
                verdict=Verdict.FAIL,
                subject=", ".join(strays),
                measured=", ".join(strays),
                required=", ".join(policy.allowed_indexes),
                summary=f"The site's policy does not allow wheels from {', '.join(strays)}.",
                next_step="Bind those packages to an allowed index, or have the site's policy changed.",
            )
        )
    if compatibility not in policy.compatibility:
        found.append(
            Finding(
                code="compatibility-not-allowed",
                verdict=Verdict.FAIL,
                subject="target.compatibility",
                measured=compatibility,
                required=", ".join(policy.compatibility),
                summary=f"The site's policy does not allow target.compatibility: {compatibility}.",
                next_step="Ask for an allowed one, or have the site's policy changed.",
            )
        )
    return tuple(found)


def with_severities(findings: Iterable[Finding], policy: Policy) -> tuple[Finding, ...]:
    """The findings with the site's severities: only FAIL and WARN are changed, never made ERROR or SKIP."""
    changed = []
    for finding in findings:
        severity = policy.severities.get(finding.code)
        if severity is not None and finding.verdict in (Verdict.FAIL, Verdict.WARN):
            changed.append(finding.model_copy(update={"verdict": Verdict(severity)}))
        else:
            changed.append(finding)
    return tuple(changed)


def waiver_matches(waiver: Waiver, finding: Finding) -> bool:
    """Whether a waiver is about a finding: its code, and its match in the finding's subject or summary."""
    return waiver.code == finding.code and (
        not waiver.match or waiver.match in finding.subject or waiver.match in finding.summary
    )


def with_waivers(findings: Sequence[Finding], waivers: Sequence[Waiver], today: date) -> tuple[Finding, ...]:
    """The findings with the spec's waivers: a waived FAIL becomes WARN; gates ``waiver-expired``, ``waiver-unused``.

    A waiver counts through its ``until`` date. One past its date waives nothing and fails; so does one
    that matches no FAIL or WARN, since what it was for is gone. Call it once with all findings of a stack.
    """
    live = [waiver for waiver in waivers if waiver.until >= today]
    used: set[int] = set()
    changed: list[Finding] = []
    for finding in findings:
        index = next((i for i, waiver in enumerate(live) if waiver_matches(waiver, finding)), None)
        if index is None or finding.verdict not in (Verdict.FAIL, Verdict.WARN):
            changed.append(finding)
            continue
        used.add(index)
        waiver = live[index]
        note = f"{waiver.reason} ({waiver.owner}, until {waiver.until.isoformat()})"
        changed.append(finding.model_copy(update={"verdict": Verdict.WARN, "waived": note}))
    for waiver in waivers:
        if waiver.until < today:
            changed.append(_stale(waiver, "waiver-expired", f"ran out on {waiver.until.isoformat()}"))
    changed.extend(
        _stale(waiver, "waiver-unused", "matches no finding any more")
        for index, waiver in enumerate(live)
        if index not in used
    )
    return tuple(changed)


def _stale(waiver: Waiver, code: str, what: str) -> Finding:
    return Finding(
        code=code,
        verdict=Verdict.FAIL,
        subject=waiver.code + (f" ({waiver.match})" if waiver.match else ""),
        measured=what,
        summary=f"The waiver of {waiver.code} by {waiver.owner} {what}.",
        next_step="Mend what it waived, or renew it with a new date and reason; remove it when it is not needed.",
        details={"reason": waiver.reason, "owner": waiver.owner, "until": waiver.until.isoformat()},
    )
