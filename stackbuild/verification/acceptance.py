"""What a stack or a site accepts: waivers and severities over a verification's findings.

Applied after a result is remembered, since a waiver ends on a day and a policy may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from stackbuild.compat.policy import with_severities, with_waivers
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.gates.pages import judged_in_containers_only
from stackbuild.site_policy import Policy
from stackbuild.spec.model import Waiver
from stackbuild.verification.model import VerificationReport


def with_acceptance(
    report: VerificationReport, waivers: Sequence[Waiver], policy: Policy, today: date
) -> VerificationReport:
    """The report with the spec's waivers and the site's severities.

    Args:
        report: As judged.
        waivers: The spec's, for whatever gates.
        policy: The site's.
        today: Waivers count through their last day.
    """
    concerned = [waiver for waiver in waivers if _concerns(waiver, report.findings)]
    findings = with_severities(with_waivers(report.findings, concerned, today), policy)
    return report.model_copy(update={"findings": findings, "complete": is_complete(findings)})


def _concerns(waiver: Waiver, findings: Sequence[Finding]) -> bool:
    """Whether this report can say that the waiver is used or is not.

    A waiver of a gate that was not judged here, such as one that needs a GPU, is neither.
    """
    mine = [finding for finding in findings if finding.code == waiver.code]
    if any(finding.verdict in (Verdict.FAIL, Verdict.WARN) for finding in mine):
        return True
    return judged_in_containers_only(waiver.code) and (
        all(finding.verdict is Verdict.PASS or not finding.applies for finding in mine)
    )
