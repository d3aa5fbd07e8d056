"""What a stack's spec and lock ask of its image, for the command and for publishing alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from stackbuild.compat.policy import with_severities, with_waivers
from stackbuild.compat.subject import HostOffer
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding
from stackbuild.scan.gates.judge import Expectations
from stackbuild.site_policy import Policy

if TYPE_CHECKING:
    from stackbuild.spec.model import Waiver


def expectations_of_stack(
    spec_path: Path, platform: str, facts: Facts, *, target: HostOffer | None = None
) -> tuple[Expectations, tuple[Waiver, ...]]:
    """What the image is held against, and the spec's waivers.

    Args:
        spec_path: The stack's spec; its lock's wheels must be in the image.
        platform: The image's platform.
        facts: The fact tables.
        target: A host in place of the spec's own target.
    """
    # Scanning an image that no stack is named for needs neither specs nor locks, which take long to import.
    from stackbuild.compat.offer import target_offer
    from stackbuild.lock.file import read_lock
    from stackbuild.lock.path import lock_path
    from stackbuild.spec.load import load_spec

    spec = load_spec(spec_path).spec
    if target is None and (spec.target.gpus or spec.target.driver):
        target = target_offer(spec.target, facts)
    distributions: dict[str, str] | None = None
    if spec.external is None:
        locked = dict(read_lock(lock_path(spec_path)).platforms).get(platform)  # type: ignore[call-overload]
        if locked is not None:
            distributions = {wheel.name: wheel.version for wheel in locked.wheels}
    return Expectations(target, distributions), spec.waivers


def with_stack_and_site(
    findings: Sequence[Finding], waivers: Sequence[Waiver], policy: Policy, today: date
) -> tuple[Finding, ...]:
    """A scan's findings with the stack's waivers of them and the site's severities.

    A waiver of what a scan did not find may be for another command, so it is not called unused here.
    """
    codes = {finding.code for finding in findings}
    concerned = [waiver for waiver in waivers if waiver.code in codes]
    return with_severities(with_waivers(findings, concerned, today), policy)
