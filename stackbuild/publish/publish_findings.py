"""The findings of publishing itself: what the registry holds, against what was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stackbuild.findings import Finding, Verdict
from stackbuild.publish.push import RemoteManifest
from stackbuild.publish.remote_image import RemoteImage


def index_finding(children: Sequence[RemoteManifest], platforms: Sequence[str]) -> Finding | None:
    """Whether all platforms are there, each once; None for one platform where one is wanted.

    Args:
        children: What there is.
        platforms: What must be there; empty for what there is.
    """
    have = sorted(child.platform for child in children)
    wanted = sorted(set(platforms) or set(have))
    if have == wanted:
        return (
            None if len(have) == 1 else _index(Verdict.PASS, f"the index has {', '.join(have)}", have, wanted)
        )
    missing = [platform for platform in wanted if platform not in have]
    what = f"{', '.join(missing)} is missing" if missing else f"there is more than {', '.join(wanted)}"
    return _index(Verdict.ERROR, f"{what}, so nothing was tagged", have, wanted)


def pushed_finding(child: RemoteManifest, diff_ids: Sequence[str]) -> Finding:
    """Whether the engine got back from the registry what was pushed.

    Args:
        child: What was pushed.
        diff_ids: The layers of what was pulled.
    """
    same = tuple(diff_ids) == child.diff_ids
    return Finding(
        code="pushed-image",
        verdict=Verdict.PASS if same else Verdict.ERROR,
        subject=child.platform,
        summary="what the registry gives back is what was built"
        if same
        else "the registry gives back other layers than were pushed, so nothing was tagged",
        measured=" ".join(diff_ids),
        required=" ".join(child.diff_ids),
        next_step="" if same else "Publish again; if it stays so, look at the registry.",
    )


def sbom_finding(child: RemoteManifest, *, there: bool) -> Finding:
    """Whether an image's SBOM is attached."""
    return Finding(
        code="sbom-attached",
        verdict=Verdict.PASS if there else Verdict.ERROR,
        subject=child.platform,
        summary="its SBOM is attached" if there else "no SBOM of it is attached, so nothing was tagged",
        next_step=""
        if there
        else "Stage it where its spec and lock are: stackbuild publish IMAGE REF --stage.",
    )


def published_finding(child: RemoteManifest) -> Finding:
    """That these inputs were published before."""
    return Finding(
        code="published-before",
        verdict=Verdict.PASS,
        subject=child.platform,
        summary="the registry has an image of exactly these inputs that passed; its tags move, nothing was built",
        measured=child.digest,
    )


def moved_finding(
    before: Mapping[str, str], now: Mapping[str, str], children: Sequence[RemoteManifest], digest: str
) -> Finding | None:
    """Whether another job moved a tag while this one judged; None when it did not.

    Args:
        before: Tag → digest when the judging began, for the tags that were there.
        now: The same, just before tagging.
        children: What was judged.
        digest: What the tags are to name.
    """
    moved = [tag for tag in {**before, **now} if now.get(tag) not in (before.get(tag), digest)]
    if not moved:
        return None
    return Finding(
        code="tags-moved-meanwhile",
        verdict=Verdict.ERROR,
        subject=", ".join(child.platform for child in children),
        summary=f"another job moved {', '.join(moved)} while this image was judged, so nothing was tagged",
        measured=", ".join(f"{tag}: {now.get(tag, 'removed')}" for tag in moved),
        required=", ".join(f"{tag}: {before.get(tag, 'no such tag')}" for tag in moved),
        next_step="See what it published; publish again if this image is to replace it.",
    )


def tags_finding(
    found: Sequence[tuple[str, RemoteImage | None]], children: Sequence[RemoteManifest], digest: str
) -> Finding:
    """Whether every tag names what was judged.

    Args:
        found: Each tag and what the registry says it names.
        children: What was judged.
        digest: What the tags must name.
    """
    wrong = [
        tag for tag, there in found if there is None or there.digest != digest or not _same(there, children)
    ]
    tags = ", ".join(tag for tag, _ in found)
    return Finding(
        code="tags-read-back",
        verdict=Verdict.ERROR if wrong else Verdict.PASS,
        summary=f"{', '.join(wrong)} names something else than was just written"
        if wrong
        else f"{tags} read back as written",
        measured="another digest" if wrong else digest,
        required=digest,
        next_step="Find out who else moves these tags; then publish again." if wrong else "",
    )


def _index(verdict: Verdict, summary: str, have: Sequence[str], wanted: Sequence[str]) -> Finding:
    return Finding(
        code="index-incomplete",
        verdict=verdict,
        summary=summary,
        measured=", ".join(have),
        required=", ".join(wanted),
        next_step=""
        if verdict is Verdict.PASS
        else "Stage each platform on its own machine (publish --stage), then publish all of their digests together.",
    )


def _same(there: RemoteImage, children: Sequence[RemoteManifest]) -> bool:
    return {child.digest: child.diff_ids for child in there.children} == {
        child.digest: child.diff_ids for child in children
    }
