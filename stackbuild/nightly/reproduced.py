"""Gate ``rebuild-reproduces``: a rebuild is what it was, or a person is told what differs."""

from __future__ import annotations

from stackbuild.drift.model import Drift
from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.comparing import Tonight, differs, told
from stackbuild.nightly.reference import Reference

_CODE = "rebuild-reproduces"


def judge_rebuild(
    tonight: Tonight, reference: Reference | None, drift: Drift | None, *, accepted: bool
) -> Finding:
    """Gate ``rebuild-reproduces``: the same inputs gave the same image.

    Args:
        tonight: The rebuilt image.
        reference: What it is held against; None in the first night with these inputs.
        drift: What differs; None when nothing does.
        accepted: The person wants the difference.
    """
    if reference is None:
        return Finding(
            code=_CODE,
            verdict=Verdict.PASS,
            subject=tonight.stack,
            summary="rebuilt from nothing; first night with these inputs: nothing to compare with",
            measured=tonight.config_digest,
        )
    if drift is None:
        return Finding(
            code=_CODE,
            verdict=Verdict.PASS,
            subject=tonight.stack,
            summary=f"rebuilt from nothing: the same as {reference.name}, all {len(tonight.diff_ids)} layers",
            measured=tonight.config_digest,
            required=reference.config_digest,
        )
    wanted = accepted or not differs(drift)
    if accepted:
        said = f"accepted in place of {reference.name}: "
    elif wanted:
        said = f"the same content as {reference.name}; beside it: "
    else:
        said = f"the rebuild differs from {reference.name}: "
    return Finding(
        code=_CODE,
        verdict=Verdict.WARN if wanted else Verdict.FAIL,
        subject=tonight.stack,
        summary=f"{said}{told(drift)}",
        measured=tonight.config_digest,
        required=reference.config_digest,
        next_step=""
        if wanted
        else "Read drift.md for what differs. Where it is wanted (another stackbuild, say), run `stackbuild nightly "
        f"{tonight.stack} --accept`; else find out which tool or machine changed.",
        details={"diff-ids": list(tonight.diff_ids), "required-diff-ids": list(reference.diff_ids)},
    )


def not_rebuilt(stack: str, why: str, *, next_step: str = "") -> Finding:
    """Gate ``rebuild-reproduces`` where nothing was rebuilt."""
    return Finding(
        code=_CODE, verdict=Verdict.SKIP, subject=stack, summary=f"not rebuilt: {why}", next_step=next_step
    )
