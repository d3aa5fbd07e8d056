"""What of a stack is past its date or soon will be: distribution, Python, driver branch, facts, waivers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from stackbuild.compat.base import judge_ages
from stackbuild.compat.contents import Contents, contents_of_lock, contents_of_spec
from stackbuild.counting import counted
from stackbuild.facts.aging import aged_facts
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.lock.model import Lock
from stackbuild.spec.gpu_image import is_cuda_image
from stackbuild.spec.model import StackSpec

# An end of life is announced so many days before; a quarter is what a move to another base takes.
SOON_DAYS = 90
WAIVER_DAYS = 14
# Fact tables that go out of date as a whole, and the distributions whose presence makes them matter.
_ABOUT = {
    "torch_releases": ("torch",),
    "onnxruntime_releases": ("onnxruntime-gpu",),
    "tensorrt_releases": ("tensorrt-cu12", "tensorrt-cu13"),
}
_ABOUT_GPUS = frozenset({"toolkits", "gpus"})


def aging_findings(
    spec: StackSpec, lock: Lock | None, facts: Facts, today: date, *, tolerance_days: int = 0
) -> tuple[Finding, ...]:
    """Gates ``distribution-eol``, ``python-eol``, ``driver-branch-eol``, ``facts-out-of-date``, ``waiver-ends-soon``.

    All are WARN: nothing is wrong with the image today. Only what concerns this stack is told.

    Args:
        spec: The spec.
        lock: Its lock; None for an external stack.
        facts: The fact tables.
        today: The day to judge for.
        tolerance_days: Days past an end of life before it is reported (the site's policy).
    """
    locked = lock.platforms if lock is not None else {}
    contents = [
        contents_of_lock(spec, locked[platform], facts, platform)
        if platform in locked
        else contents_of_spec(spec, facts, platform)
        for platform in spec.platforms
    ]
    found = [finding for one in contents for finding in _ends_of_life(one, facts, today, tolerance_days)]
    found += _driver_branch(spec, facts, today)
    found += _facts(contents, facts, today)
    found += _waivers(spec, today)
    # Platforms mostly share their distribution and Python.
    return tuple({(finding.code, finding.subject): finding for finding in found}.values())


def _ends_of_life(contents: Contents, facts: Facts, today: date, tolerance_days: int) -> Iterator[Finding]:
    for finding in judge_ages(contents, facts, today, tolerance_days, soon_days=SOON_DAYS):
        if finding.code == "distribution-eol" and is_cuda_image(contents.base_image):
            # NVIDIA's support policy of nvidia/cuda on Docker Hub: images of what is past its end are removed.
            also = (
                f"{finding.next_step} NVIDIA removes such images from the registry: keep a copy of this one."
            )
            yield finding.model_copy(update={"next_step": also})
        else:
            yield finding


def _driver_branch(spec: StackSpec, facts: Facts, today: date) -> Iterator[Finding]:
    if spec.target.driver is None:
        return
    driver = spec.target.driver.removeprefix(">=")
    row = facts.driver_branch(int(driver.partition(".")[0]))
    if row is None or row.eol is None:
        return
    soon = today + timedelta(days=SOON_DAYS)
    if row.eol > f"{soon:%Y-%m}":
        return
    past = row.eol < f"{today:%Y-%m}"
    when = f"reached its end of life in {row.eol}" if past else f"reaches its end of life in {row.eol}"
    yield Finding(
        code="driver-branch-eol",
        verdict=Verdict.WARN,
        subject=f"R{row.branch}",
        measured=f"end of life {row.eol}" + (f" (disputed: {row.eol_note})" if row.eol_note else ""),
        required=f"supported on {today.isoformat()}",
        summary=f"The oldest driver of the target, {driver}, is of the branch R{row.branch}, which {when}.",
        next_step="Move the fleet's hosts to a driver branch that is supported, then raise 'target.driver'.",
        details={"source": list(row.source), "confidence": row.confidence},
    )


def _facts(contents: list[Contents], facts: Facts, today: date) -> Iterator[Finding]:
    present = {item.name for one in contents for item in one.distributions}
    tables = {table for table, names in _ABOUT.items() if present & set(names)}
    if any(one.expects_gpu for one in contents):
        tables |= _ABOUT_GPUS
    if any(is_cuda_image(one.base_image) for one in contents):
        tables.add("cuda_image_digests")
    for aged in aged_facts(facts, today):
        if aged.table in tables:
            yield Finding(
                code="facts-out-of-date",
                verdict=Verdict.WARN,
                subject=aged.table,
                measured=aged.what,
                required=f"collected for {today.isoformat()}",
                summary=f"The facts about {aged.table.replace('_', ' ')}, which judge this stack, are old: {aged.what}.",
                next_step="Update stackbuild, whose releases bring new facts; newer versions are judged with less certainty.",
            )


def _waivers(spec: StackSpec, today: date) -> Iterator[Finding]:
    for waiver in spec.waivers:
        left = (waiver.until - today).days
        if 0 <= left <= WAIVER_DAYS:
            when = "today" if left == 0 else f"in {counted(left, 'day')}"
            yield Finding(
                code="waiver-ends-soon",
                verdict=Verdict.WARN,
                subject=waiver.code + (f" ({waiver.match})" if waiver.match else ""),
                measured=f"until {waiver.until.isoformat()}",
                required=f"more than {WAIVER_DAYS} days",
                summary=f"The waiver of {waiver.code} by {waiver.owner} ends {when}, and fails from then on.",
                next_step="Mend what it waives, or renew it with a new date and reason.",
                details={"reason": waiver.reason, "owner": waiver.owner},
            )
