"""The static judge's answer on a lock as it would be, against the lock as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date

from stackbuild.compat.check import Subject, check
from stackbuild.compat.contents import Distribution, contents_of_lock
from stackbuild.compat.offer import target_offer
from stackbuild.compat.subjects import subject_of_stack
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import Lock, PlatformLock
from stackbuild.site_policy import Policy
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform

# How grave an answer is; a gate that could not be judged of the newer version is graver than a pass.
_GRAVITY: Mapping[Verdict, int] = {
    Verdict.PASS: 0,
    Verdict.SKIP: 1,
    Verdict.WARN: 2,
    Verdict.ERROR: 3,
    Verdict.FAIL: 4,
}
# What a waiver itself finds changes with what it waives, and says nothing of a version.
_OF_WAIVERS = frozenset({"waiver-unused", "waiver-expired"})


class LockJudge:
    """Judges variations of a lock with the gates of ``check``, against the spec's target.

    Args:
        stack: The spec.
        lock: Its lock as it is.
        facts: The fact tables.
        policy: The site's policy.
        today: The day to judge for.

    Raises:
        SpecError: ``unknown-gpu``.
    """

    def __init__(self, stack: LoadedSpec, lock: Lock, facts: Facts, policy: Policy, today: date) -> None:
        spec = stack.spec
        self._stack = stack
        self._facts = facts
        self._policy = policy
        self._today = today
        self._subjects = {
            subject.contents.platform: replace(subject, noted=())
            for subject in subject_of_stack(spec, str(stack.path), lock, "", facts)
        }
        wanted = spec.target.driver or spec.target.gpus
        self._hosts = [target_offer(spec.target, facts)] if wanted else []
        self._before = {
            platform: _gravest(self._findings(subject)) for platform, subject in self._subjects.items()
        }

    def of_wheels(self, platform: Platform, wheels: Iterable[Distribution]) -> tuple[Verdict, str]:
        """The answer on other wheels: a verdict, and as a reason what is worse than it is now."""
        subject = self._subjects[platform]
        return self._answer(
            platform, replace(subject, contents=replace(subject.contents, distributions=tuple(wheels)))
        )

    def of_lock(self, platform: Platform, lock: PlatformLock) -> tuple[Verdict, str]:
        """The answer on another base."""
        contents = contents_of_lock(self._stack.spec, lock, self._facts, platform)
        return self._answer(platform, replace(self._subjects[platform], contents=contents))

    def _answer(self, platform: Platform, subject: Subject) -> tuple[Verdict, str]:
        before = self._before[platform]
        worse = [
            finding
            for code, finding in _gravest(self._findings(subject)).items()
            if _grave(finding) > (_grave(before[code]) if code in before else 0)
        ]
        if not worse:
            unasked = "" if self._hosts else "; the spec names no target to judge it on"
            return Verdict.PASS, f"no gate is worse than with what is locked{unasked}"
        gravest = max(worse, key=_grave)
        return gravest.verdict, f"{gravest.summary} [{gravest.code}]"

    def _findings(self, subject: Subject) -> tuple[Finding, ...]:
        return check([subject], self._hosts, self._facts, self._policy, self._today).findings


def _gravest(findings: Iterable[Finding]) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for finding in findings:
        if finding.code in _OF_WAIVERS:
            continue
        if finding.code not in found or _grave(finding) > _grave(found[finding.code]):
            found[finding.code] = finding
    return found


def _grave(finding: Finding) -> int:
    """A SKIP with nothing to judge is as good as a pass."""
    return 0 if finding.verdict is Verdict.SKIP and not finding.applies else _GRAVITY[finding.verdict]
