"""Whether a base image, or an external stack's image, is still where its tag or digest says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stackbuild.annotate.image_reference import split_reference
from stackbuild.digests import short_digest
from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.findings import Finding, Verdict
from stackbuild.image_environment import environment_of
from stackbuild.lock.file import INVALID
from stackbuild.lock.model import ImageBaseLock
from stackbuild.nightly.outcome import finding_of_error
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import ResolvedImage
from stackbuild.spec.model import Platform

# What of a base's environment decides where it runs; the rest of it is version noise.
_TELLING = ("CUDA_VERSION", "NVIDIA_REQUIRE_")
# Of an external stack nothing is locked.
_THE_LAST_TIME = "the digest that it had the last time"


def check_image_base(
    base: ImageBaseLock, platform: Platform, *, client: RegistryClient, pinned: bool = False
) -> tuple[Finding, ...]:
    """Gates ``tag-removed``, ``base-tag-moved``, ``digest-gone`` and ``no-such-platform`` over a locked base.

    A tag that is gone is a FAIL even while the locked digest can still be fetched: it will not be for long. A
    tag that moved is a WARN while the locked platform's digest is served, and drift for the night.

    Args:
        base: The locked base.
        platform: Its platform.
        client: Reads the registry.
        pinned: The spec itself names the digest, so that locking again takes no other.
    """
    where = f"{base.image}:{base.tag}"
    try:
        now = client.resolve(base.image, base.tag, locked_digest=base.platform_digest)
    except LockError as error:
        if error.code != "tag-removed":
            return (finding_of_error(error, subject=where),)
        served = _still_served(client, base.image, base.platform_digest)
        return (finding_of_error(error, subject=where, details={"locked-digest-served": served}),)
    if now.index_digest != base.index_digest:
        return tuple(_moved(base, platform, now, client, pinned=pinned))
    wrong = _wrongly_locked(base, platform, now, client)
    if wrong:
        return (_invalid(where, wrong, now),)
    return (_served(where, f"{where} is still {short_digest(base.index_digest)}…", now),)


def _wrongly_locked(
    base: ImageBaseLock, platform: Platform, now: ResolvedImage, client: RegistryClient
) -> str:
    """Where the lock says another thing of a base than the base that it names; empty when nowhere.

    Asked of the configuration alone, which lies under its digest: registries count manifests as pulls.
    """
    served = now.platforms.get(platform)
    if served != base.platform_digest:
        return f"base.platform-digest: its index has {served or 'nothing'} for {platform}, and {base.platform_digest} is locked"
    try:
        config = client.config(base.image, base.config_digest)
    except LockError:
        return f"base.config-digest: the registry has no {base.config_digest}"
    if tuple(config.get("rootfs", {}).get("diff_ids", ())) != base.diff_ids:
        return "base.diff-ids: its configuration has other layers"
    said = {key: value for key, value in config.items() if key not in ("rootfs", "history")}
    other = sorted(key for key in {*said, *base.config} if said.get(key) != base.config.get(key))
    return f"base.config: its configuration has another {other[0]}" if other else ""


def _invalid(where: str, wrong: str, now: ResolvedImage) -> Finding:
    return Finding(
        code=INVALID,
        verdict=Verdict.FAIL,
        subject=where,
        summary=f"The lock says of {where} what is not so ({wrong}); was it edited by hand?",
        next_step="Take back the lock that was committed, or lock again.",
        details={"index-digest": now.index_digest},
    )


def check_external_image(
    reference: str, platforms: Iterable[Platform], *, client: RegistryClient, known_digest: str = ""
) -> tuple[Finding, ...]:
    """The same of an image that others built.

    Args:
        reference: ``REPOSITORY[:TAG]`` or ``REPOSITORY@DIGEST``.
        platforms: The platforms that the stack is meant for.
        client: Reads the registry.
        known_digest: The digest that the tag had the last time; empty when nobody looked before.

    Returns:
        The findings; ``external_digest`` reads the digest of today out of them.
    """
    image, tag, digest = split_reference(reference)
    try:
        now = _resolved(client, image, tag, digest, known_digest)
    except StackbuildError as error:
        return (
            finding_of_error(error, subject=reference, details=_known(client, image, known_digest, error)),
        )
    found = []
    if known_digest and now.index_digest != known_digest:
        found.append(
            Finding(
                code="external-moved",
                verdict=Verdict.WARN,
                subject=reference,
                measured=now.index_digest,
                required=known_digest,
                summary=f"{reference} is now {short_digest(now.index_digest)}…, and was {short_digest(known_digest)}… "
                "the last time.",
                next_step="Verify it anew before it is used; name it by digest where it must stay as it is.",
                details={"index-digest": now.index_digest, "previous-digest": known_digest},
            )
        )
    else:
        found.append(_served(reference, f"{reference} is {short_digest(now.index_digest)}…", now))
    for platform in platforms:
        if platform not in now.platforms:
            found.append(_no_platform(reference, platform, now, Verdict.FAIL))
    return tuple(found)


def external_digest(findings: Iterable[Finding]) -> str:
    """The digest that an external stack's reference had when these findings were made; empty when unknown."""
    named = (str(finding.details.get("index-digest", "")) for finding in findings)
    return next(filter(None, named), "")


def last_digest(findings: Iterable[Finding]) -> str:
    """The digest that an external stack's tag had before it was removed; empty when the registry has that no more."""
    for finding in findings:
        if finding.details.get("previous-digest-served") is True:
            return str(finding.details["previous-digest"])
    return ""


def _resolved(client: RegistryClient, image: str, tag: str, digest: str, known: str) -> ResolvedImage:
    if not digest:
        return client.resolve(image, tag, locked_digest=known or None, known_as=_THE_LAST_TIME)
    found = client.resolve_digest(image, digest)
    if found is None:
        raise LockError(
            f"the registry no longer has {digest} of {image}",
            code="digest-gone",
            where=image,
            do="Ask its publisher for the image that replaces it, and name that in 'external'.",
        )
    return found


def _known(client: RegistryClient, image: str, digest: str, error: StackbuildError) -> Mapping[str, Any]:
    if error.code != "tag-removed":
        return {}
    return {"previous-digest": digest, "previous-digest-served": _still_served(client, image, digest)}


def _still_served(client: RegistryClient, image: str, digest: str) -> bool | None:
    """None when the registry, which has just said that the tag is gone, does not say."""
    try:
        return client.resolve_digest(image, digest) is not None
    except NotJudgedError:
        return None


def _served(subject: str, what: str, now: ResolvedImage) -> Finding:
    return Finding(
        code="inputs-served",
        verdict=Verdict.PASS,
        subject=subject,
        measured=now.index_digest,
        summary=f"{what}.",
        details={"index-digest": now.index_digest},
    )


def _moved(
    base: ImageBaseLock, platform: Platform, now: ResolvedImage, client: RegistryClient, *, pinned: bool
) -> Iterator[Finding]:
    where = f"{base.image}:{base.tag}"
    new = now.platforms.get(platform)
    if new == base.platform_digest:
        yield _served(where, f"{where} has a new index, and its {platform} image is the locked one", now)
        return
    details: dict[str, Any] = {"index-digest": now.index_digest, "locked-digest": base.index_digest}
    if client.resolve_digest(base.image, base.platform_digest) is None:
        yield Finding(
            code="digest-gone",
            verdict=Verdict.FAIL,
            subject=where,
            measured=f"the tag is now {now.index_digest}",
            required=base.platform_digest,
            summary=f"{where} has moved, and the registry no longer has the locked {base.platform_digest}.",
            next_step="Lock again, or map the registry to a mirror that kept it in the site file.",
            details=details,
        )
    elif new is None:
        yield _no_platform(where, platform, now, Verdict.WARN)
    changes = _changes(base, new, client) if new is not None else {}
    yield Finding(
        code="base-tag-moved",
        verdict=Verdict.WARN,
        subject=where,
        measured=now.index_digest,
        required=base.index_digest,
        summary=f"{where} is now {short_digest(now.index_digest)}…, and {short_digest(base.index_digest)}… is locked"
        + (f": {_told(changes)}." if changes else "."),
        next_step="Read what moved. When it is wanted, "
        + ("change 'base.digest' in the spec and lock again" if pinned else "lock again with --upgrade base")
        + "; the lock stays until then.",
        details={**details, "changes": changes},
    )


def _changes(base: ImageBaseLock, digest: str, client: RegistryClient) -> dict[str, Any]:
    """What moved in the configuration: name → [locked, now]; or why that could not be read."""
    try:
        manifest = client.manifest(base.image, digest)
        config = client.config(base.image, str(manifest["config"]["digest"]))
    except (LockError, NotJudgedError) as error:
        return {"unread": error.what}
    then, now = environment_of(base.config), environment_of(config)
    changes: dict[str, Any] = {}
    created = str(config.get("created") or "")
    if created != base.created:
        changes["created"] = [base.created, created]
    for name in sorted({*then, *now}):
        if name.startswith(_TELLING) and then.get(name) != now.get(name):
            changes[name] = [then.get(name, ""), now.get(name, "")]
    layers = [str(layer) for layer in config.get("rootfs", {}).get("diff_ids", ())]
    kept = len(set(layers) & set(base.diff_ids))
    if tuple(layers) != base.diff_ids:
        changes["layers"] = [str(len(base.diff_ids)), f"{len(layers)} of which {kept} are as locked"]
    return changes


def _told(changes: Mapping[str, Any]) -> str:
    if "unread" in changes:
        return f"what moved could not be read ({changes['unread']})"
    return ", ".join(f"{name} {then or 'none'} → {now or 'none'}" for name, (then, now) in changes.items())


def _no_platform(where: str, platform: str, now: ResolvedImage, verdict: Verdict) -> Finding:
    has = ", ".join(sorted(now.platforms))
    return Finding(
        code="no-such-platform",
        verdict=verdict,
        subject=where,
        measured=has,
        required=platform,
        summary=f"{where} has no {platform} any more; it has {has}.",
        next_step="Ask its publisher, take the platform out of 'platforms', or choose a tag that has it.",
        details={"index-digest": now.index_digest},
    )
