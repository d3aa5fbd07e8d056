"""Checking stacks against hosts: the judge, the spec's waivers and the site's policy together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from stackbuild.compat.contents import Contents, needs
from stackbuild.compat.judge import Answer, HostJudge, answer_of, judge_image
from stackbuild.compat.policy import judge_policy, with_severities, with_waivers
from stackbuild.compat.report import Cell, CheckedStack, CheckReport, check_report
from stackbuild.compat.subject import Compatibility, HostOffer, ImageNeeds
from stackbuild.compat.variants import newest_fitting, oldest_driver
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.gates.pages import judged_in_containers_only
from stackbuild.site_policy import Policy
from stackbuild.spec.model import Waiver


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

    A waiver is used when it matches a finding anywhere in its stack's row, so the waivers of a stack
    are applied once, over the row.
    """
    judge = HostJudge(facts)
    prepared = judge.prepare(hosts)
    maker = _Cells(facts)
    stacks: list[CheckedStack] = []
    cells: list[Cell] = []
    for subject in subjects:
        alone = (
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
        image = needs(subject.contents, facts, subject.accepts)
        row = judge.prepared_row(image, prepared)
        if policy.severities or subject.waivers:
            parts = [alone, *(answer.findings for answer in row)]
            alone, *changed = _with_site_and_waivers(parts, subject, policy, today)
            row = [answer_of(findings) for findings in changed]
        stacks.append(
            CheckedStack(
                stack=subject.contents.name,
                judged_from=subject.judged_from,
                path=subject.path,
                verdict=_verdict_alone(alone),
                findings=alone,
                oldest_driver=oldest_driver(image, subject.accepts or "minor", facts),
            )
        )
        cells.extend(
            maker.cell(subject.contents.name, host, answer, image, subject.accepts or "minor")
            for host, answer in zip(hosts, row, strict=True)
        )
    return check_report(stacks, [host.name for host in hosts], cells)


def _with_site_and_waivers(
    parts: list[tuple[Finding, ...]], subject: Subject, policy: Policy, today: date
) -> list[tuple[Finding, ...]]:
    if policy.severities:
        parts = [with_severities(part, policy) for part in parts]
    if not subject.waivers:
        return parts
    flat = [finding for part in parts for finding in part]
    # A waiver of a runtime gate is used, or not, by a verification.
    waivers = [waiver for waiver in subject.waivers if not judged_in_containers_only(waiver.code)]
    changed = with_waivers(flat, waivers, today)
    regrouped: list[tuple[Finding, ...]] = []
    start = 0
    for part in parts:
        regrouped.append(changed[start : start + len(part)])
        start += len(part)
    # What the waivers themselves found belongs to the stack, not to a host.
    regrouped[0] = (*regrouped[0], *changed[start:])
    return regrouped


def _verdict_alone(findings: tuple[Finding, ...]) -> Verdict:
    return answer_of(findings).verdict if findings else Verdict.PASS


class _Cells:
    """Makes cells; what equal cells share is worked out once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._advice: dict[tuple[ImageNeeds, HostOffer, Compatibility], tuple[str, ...]] = {}
        self._fitting: dict[tuple[HostOffer, Compatibility], str] = {}
        self._drivers: dict[tuple[ImageNeeds, Compatibility], str] = {}

    def cell(
        self,
        stack: str,
        host: HostOffer,
        answer: Answer,
        image: ImageNeeds,
        accepts: Compatibility,
    ) -> Cell:
        advice: tuple[str, ...] = ()
        if answer.verdict is Verdict.FAIL:
            key = (image, host, accepts)
            cached = self._advice.get(key)
            advice = cached if cached is not None else self._advice.setdefault(key, tuple(self._advise(*key)))
        verdict = answer.verdict if answer.findings else Verdict.PASS
        return Cell(stack, host.name, verdict, answer.findings, advice)

    def _advise(self, image: ImageNeeds, host: HostOffer, accepts: Compatibility) -> Iterator[str]:
        """The newest torch and base for this host, and the oldest driver for this stack."""
        if any(component.name == "torch" for component in image.components) and host.max_cuda is not None:
            line = self._fitting.get((host, accepts))
            if line is None:
                choice = newest_fitting(host, accepts, self._facts)
                base = (
                    f" on a base of CUDA {choice.base_cuda} or older" if choice and choice.base_cuda else ""
                )
                line = f"This host runs torch {choice.torch} ({choice.variant}){base}." if choice else ""
                self._fitting[host, accepts] = line
            if line:
                yield line
        driver = self._drivers.get((image, accepts))
        if driver is None:
            driver = self._drivers[image, accepts] = oldest_driver(image, accepts, self._facts) or ""
        if driver:
            yield f"The oldest driver that serves this stack is {driver}."
