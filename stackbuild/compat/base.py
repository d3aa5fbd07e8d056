"""Gates over the base image: its tag, its digest, its distribution's and Python's age."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from stackbuild.compat.contents import Contents
from stackbuild.compat.cuda_tag import parse_cuda_tag
from stackbuild.counting import counted
from stackbuild.digests import short_digest
from stackbuild.facts.tables import Facts
from stackbuild.findings import Finding, Verdict
from stackbuild.spec.gpu_image import is_cuda_image


def judge_tag(contents: Contents) -> Iterator[Finding]:
    """Gate ``no-such-tag``: an nvidia/cuda tag that cannot exist by NVIDIA's own grammar."""
    if not is_cuda_image(contents.base_image) or not contents.base_tag:
        return
    tag = parse_cuda_tag(contents.base_tag)
    problem = suggestion = ""
    if contents.base_tag == "latest":
        problem, suggestion = (
            "nvidia/cuda has no tag latest",
            "Name a release, for example 13.0.3-base-ubuntu24.04.",
        )
    elif tag is None:
        problem = f"{contents.base_tag} does not follow CUDA-FLAVOUR-OS, for example 13.0.3-base-ubuntu24.04"
        suggestion = "Look the tag up in the list of supported tags."
    elif tag.release.count(".") == 1:
        problem = f"{contents.base_tag} lacks the update number of CUDA {tag.release}"
        suggestion = f"Write CUDA {tag.release} with its update, for example {tag.release}.1."
    elif tag.cudnn and tag.flavour == "base":
        problem, suggestion = (
            "no -base image has cuDNN",
            "Use runtime or devel, or take cuDNN from the wheels on -base.",
        )
    elif tag.cudnn and _release(tag.release) >= (12, 4, 1) and tag.cudnn != "cudnn":
        problem = f"since CUDA 12.4.1 the suffix is cudnn without a number, not {tag.cudnn}"
        suggestion = contents.base_tag.replace(tag.cudnn, "cudnn")
    elif tag.cudnn and tag.release == "12.4.0":
        problem = "CUDA 12.4.0 was never published with cuDNN"
        suggestion = contents.base_tag.replace("12.4.0", "12.4.1").replace(tag.cudnn, "cudnn")
    if problem:
        yield Finding(
            code="no-such-tag",
            verdict=Verdict.FAIL,
            subject=f"{contents.base_image}:{contents.base_tag}",
            measured=contents.base_tag,
            summary=f"There is no such tag: {problem}.",
            next_step=suggestion,
        )


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def judge_digest(contents: Contents, digest: str | None, facts: Facts) -> Iterator[Finding]:
    """Gates ``tag-digest-disagree`` and ``digest-platform-mismatch``, from digests seen in public.

    Args:
        contents: The stack.
        digest: The digest that the spec gives for its base.
        facts: The fact tables.
    """
    if digest is None or not is_cuda_image(contents.base_image):
        return
    rows = [row for row in facts.table("cuda_image_digests").rows if row.digest == digest]
    if not rows:
        return
    row = next((row for row in rows if row.tag == contents.base_tag), rows[0])
    subject = f"{contents.base_image}:{contents.base_tag}"
    if row.tag != contents.base_tag:
        yield Finding(
            code="tag-digest-disagree",
            verdict=Verdict.FAIL if row.corroborated else Verdict.WARN,
            subject=subject,
            measured=f"{short_digest(digest)}… is {row.tag}",
            required=contents.base_tag,
            summary=f"The digest belongs to {row.tag}, not to {contents.base_tag}; the digest is what would be used.",
            next_step="Leave the digest out and let 'stackbuild lock' record it, or correct the tag.",
            details={"confidence": row.confidence},
        )
    platform = next((name for name in ("linux/amd64", "linux/arm64") if row.kind.startswith(name)), None)
    if platform is not None and platform != contents.platform:
        yield Finding(
            code="digest-platform-mismatch",
            verdict=Verdict.FAIL,
            subject=subject,
            measured=f"{short_digest(digest)}… is the {platform} image",
            required=contents.platform,
            summary=f"The digest is that of the {platform} image alone; on {contents.platform} it ends in 'exec format error'.",
            next_step="Pin the index digest, which serves every platform.",
        )
    elif platform is not None:
        yield Finding(
            code="digest-platform-mismatch",
            verdict=Verdict.PASS,
            subject=subject,
            measured=f"{short_digest(digest)}… is the {platform} image alone",
            summary=f"The digest pins the {platform} image alone; other platforms cannot use this spec.",
            details={"note": "single-platform-pin"},
        )


def judge_ages(
    contents: Contents, facts: Facts, today: date, tolerance_days: int = 0, *, soon_days: int = 0
) -> Iterator[Finding]:
    """Gates ``distribution-eol`` and ``python-eol``: past their end of life, no security fixes arrive any more.

    Args:
        contents: The stack.
        facts: The fact tables.
        today: The day to judge for.
        tolerance_days: Days past an end of life before it is reported (the site's policy).
        soon_days: Days before an end of life from which it is announced; 0 announces none.
    """
    row = facts.distribution(contents.os)
    if row is not None:
        # A note that begins with the date has all of it: "2026-07-11 (LTS 2028-06-30)".
        note = row.eol_note if row.eol_note.startswith(row.eol) else f"{row.eol} {row.eol_note}".strip()
        said = _age(contents.os, "the end of its regular support", row.eol, today, tolerance_days, soon_days)
        if said:
            yield Finding(
                code="distribution-eol",
                verdict=Verdict.WARN,
                subject=contents.os,
                measured=f"end of life {note}",
                required=f"supported on {today.isoformat()}",
                summary=said,
                next_step="Plan a move to a base with a newer distribution.",
                details={"source": list(row.source), "confidence": row.confidence},
            )
    for python in facts.table("python_versions").rows:
        if python.version != contents.python:
            continue
        name = f"Python {contents.python}"
        said = _age(name, "its end of life", python.eol, today, tolerance_days, soon_days)
        if said:
            yield Finding(
                code="python-eol",
                verdict=Verdict.WARN,
                subject=name,
                measured=f"end of life {python.eol}",
                required=f"supported on {today.isoformat()}",
                summary=said,
                next_step="Plan a move to a base whose distribution has a newer Python.",
            )


def _age(name: str, end: str, eol: str, today: date, tolerance_days: int, soon_days: int) -> str:
    """What to say of an end of life; empty while it is far, or tolerated."""
    left = (date.fromisoformat(eol) - today).days
    if left < -tolerance_days:
        return f"{name} is past {end} ({eol})."
    if soon_days and 0 <= left <= soon_days:
        return f"{name} reaches {end} on {eol}, in {counted(left, 'day')}."
    return ""
