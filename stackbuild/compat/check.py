"""Checking stacks against hosts: the judge, the spec's waivers and the site's policy together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby, islice
from typing import Literal

from stackbuild.collection import collection_paused
from stackbuild.compat.advice import Adviser
from stackbuild.compat.contents import Contents
from stackbuild.compat.judge import Answer, HostJudge, answer_of, judge_image
from stackbuild.compat.needs import needs
from stackbuild.compat.oldest_driver import oldest_driver
from stackbuild.compat.policy import judge_policy, waiver_matches, with_severities, with_waivers
from stackbuild.compat.report import Cell, CheckedStack, CheckReport, check_report
from stackbuild.compat.subject import Compatibility, HostOffer, ImageNeeds
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict, is_complete
from stackbuild.site_policy import Policy
from stackbuild.spec.model import Waiver

# Gates that a scan judges as well, library by library.
_SCANNED_TOO = frozenset({"arch-not-covered", "glibc-too-old", "ptx-not-compilable"})


@dataclass(frozen=True)
class Subject:
    """One stack or image to check.

    Attributes:
        contents: What it holds.
        judged_from: Where that is known from.
        path: The spec's file; empty for an image.
        accepts: The loosest compatibility that its spec accepts; None for an image.
        digest: The digest that the spec gives for its base.
        waivers: The spec's waivers.
        noted: What reading it noticed, such as a stale lock or what locking found.
    """

    contents: Contents
    judged_from: Literal["lock", "spec", "image"]
    path: str = ""
    accepts: Compatibility | None = None
    digest: str | None = None
    waivers: tuple[Waiver, ...] = ()
    noted: tuple[Finding, ...] = ()


def check(
    subjects: Sequence[Subject], hosts: Sequence[HostOffer], facts: Facts, policy: Policy, today: date
) -> CheckReport:
    """Judge every subject by itself and on every host.

    A waiver is used when it matches a finding anywhere in its stack's rows, one for each platform, so the
    waivers of a stack are applied once, over all of them.
    """
    with (
        collection_paused()
    ):  # a fleet's hundred thousand cells hold no garbage; looking for it takes a third of the time
        return _check(subjects, hosts, facts, policy, today)


def _check(
    subjects: Sequence[Subject], hosts: Sequence[HostOffer], facts: Facts, policy: Policy, today: date
) -> CheckReport:
    judge = HostJudge(facts)
    prepared = judge.prepare(hosts)
    adviser = Adviser(hosts, facts)
    stacks: list[CheckedStack] = []
    cells: list[Cell] = []
    complete = True
    for _, platforms in groupby(subjects, key=lambda subject: (subject.contents.name, subject.path)):
        rows = []
        for subject in platforms:
            image = needs(subject.contents, facts, subject.accepts)
            alone = _judge_alone(subject, facts, policy, today)
            rows.append(_Row(subject, image, alone, judge.prepared_row(image, prepared)))
        for row in _with_site_and_waivers(rows, policy, today):
            subject = row.subject
            accepts = subject.accepts or "minor"
            stacks.append(
                CheckedStack(
                    stack=subject.contents.name,
                    platform=subject.contents.platform,
                    judged_from=subject.judged_from,
                    path=subject.path,
                    verdict=_verdict_alone(row.alone),
                    findings=row.alone,
                    oldest_driver=oldest_driver(row.image, accepts, facts),
                )
            )
            complete = complete and is_complete(row.alone) and all(told.complete for told in row.answers)
            advice = adviser.row(row.image, accepts, row.answers)
            for host, answer, lines in zip(hosts, row.answers, advice, strict=True):
                verdict = answer.verdict if answer.findings else Verdict.PASS
                cells.append(
                    Cell(
                        subject.contents.name,
                        host.name,
                        verdict,
                        answer.findings,
                        lines,
                        subject.contents.platform,
                    )
                )
    return check_report(stacks, [host.name for host in hosts], cells, complete=complete)


@dataclass(frozen=True)
class _Row:
    """One platform of a stack: what was found of it alone, and on each host."""

    subject: Subject
    image: ImageNeeds
    alone: tuple[Finding, ...]
    answers: Sequence[Answer]


def _judge_alone(subject: Subject, facts: Facts, policy: Policy, today: date) -> tuple[Finding, ...]:
    return (
        *subject.noted,
        *judge_image(
            subject.contents,
            facts,
            today,
            digest=subject.digest,
            eol_tolerance_days=policy.eol_tolerance_days,
        ),
        *judge_policy(subject.contents, subject.accepts or "native", policy),
    )


def _with_site_and_waivers(rows: list[_Row], policy: Policy, today: date) -> list[_Row]:
    """The rows of one stack with the site's severities and the spec's waivers."""
    waivers = rows[0].subject.waivers
    if not policy.severities and not waivers:
        return rows
    parts = [part for row in rows for part in (row.alone, *(answer.findings for answer in row.answers))]
    if policy.severities:
        parts = [with_severities(part, policy) for part in parts]
    if waivers:
        flat = [finding for part in parts for finding in part]
        # A waiver of a gate that sees other things than a check does is used, or not, there.
        concerned = [waiver for waiver in waivers if _concerns(waiver, flat)]
        changed = iter(with_waivers(flat, concerned, today))
        parts = [tuple(islice(changed, len(part))) for part in parts]
        # What the waivers themselves found belongs to the stack, not to a host.
        parts[0] = (*parts[0], *changed)
    regrouped = iter(parts)
    return [
        replace(row, alone=next(regrouped), answers=[answer_of(next(regrouped)) for _ in row.answers])
        for row in rows
    ]


def _concerns(waiver: Waiver, findings: Sequence[Finding]) -> bool:
    """Whether a check can say that a waiver is used or is not.

    Runtime gates are judged in containers. Gates over single libraries are judged by a scan as well, which
    names files that a check does not know: a waiver of one that matches nothing here may be meant for it.
    """
    from stackbuild.gates.pages import judged_in_containers_only  # only a spec with waivers pays for it

    if judged_in_containers_only(waiver.code):
        return False
    if not waiver.match or waiver.code not in _SCANNED_TOO:
        return True
    return any(waiver_matches(waiver, finding) for finding in findings)


def _verdict_alone(findings: tuple[Finding, ...]) -> Verdict:
    return answer_of(findings).verdict if findings else Verdict.PASS
