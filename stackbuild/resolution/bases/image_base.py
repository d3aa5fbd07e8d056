"""Pinning a base image: by its index's digest and its platform's, with its configuration and diff IDs."""

from __future__ import annotations

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import LockError
from stackbuild.lock.model import ImageBaseLock
from stackbuild.progress import Observer
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import ResolvedImage
from stackbuild.registry.reference import endpoint_of, parse_repository
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import ImageBaseSpec


def lock_image_base(
    spec: ImageBaseSpec,
    platform: str,
    *,
    client: RegistryClient,
    previous: ImageBaseLock | None = None,
    upgrade: bool = False,
) -> ImageBaseLock:
    """Pin a base image.

    Args:
        spec: The spec's base.
        platform: For example ``linux/amd64``.
        client: Reads its registry.
        previous: The base of the previous lock; it stays while the spec names the same tag.
        upgrade: Look at the tag anew.

    Raises:
        LockError: ``no-such-tag``, ``tag-removed``, ``no-such-repository``, ``tag-digest-mismatch``,
            ``digest-platform-mismatch``, ``no-such-platform``.
        NotJudgedError: As ``RegistryClient.resolve``.
    """
    if previous is not None and not upgrade and _still_meant(previous, spec):
        return previous
    known = previous.index_digest if previous is not None and _same_tag(previous, spec) else None
    resolved = client.resolve(spec.image, spec.tag, locked_digest=spec.digest or known)
    if spec.digest is not None and spec.digest != resolved.index_digest:
        resolved = _as_pinned(spec, resolved, client)
    platform_digest = _platform_digest(spec, resolved, platform)
    manifest = client.manifest(spec.image, platform_digest)
    config_digest = str(manifest["config"]["digest"])
    config = client.config(spec.image, config_digest)
    found = f"{config.get('os')}/{config.get('architecture')}"
    if found != platform:
        raise _wrong_platform(spec, platform_digest, found, platform)
    return ImageBaseLock(
        image=spec.image,
        tag=spec.tag,
        index_digest=resolved.index_digest,
        platform_digest=platform_digest,
        config_digest=config_digest,
        diff_ids=tuple(config["rootfs"]["diff_ids"]),
        config={key: value for key, value in config.items() if key not in ("rootfs", "history")},
        created=str(config.get("created") or "1970-01-01T00:00:00Z"),
    )


def image_base_reference(base: ImageBaseLock, site: SiteConfig) -> str:
    """What an engine pulls a locked base by: its platform's digest, at the site's mirror.

    A pull by the index digest would give whichever platform came first (docker-notes, "Base image").
    """
    endpoint = endpoint_of(parse_repository(base.image), site.registries)
    return f"{endpoint.reference}@{base.platform_digest}"


def held_image_base(base: ImageBaseLock, engine: Engine, site: SiteConfig) -> ImageInfo | None:
    """The engine's copy of a locked base; None where it would have to be pulled."""
    # With the containerd store an image's id is its manifest's digest, so the reference is asked for too.
    return engine.image(base.config_digest) or engine.image(image_base_reference(base, site))


def ensure_image_base(
    base: ImageBaseLock, platform: str, *, engine: Engine, site: SiteConfig, observer: Observer
) -> ImageInfo:
    """Have the engine hold a locked base, pulled where it is missing.

    Raises:
        LockError: ``base-content-mismatch``, ``no-such-image``; ``lock-invalid``: the lock's digests are of two images.
        NotJudgedError: ``registry-rate-limited``, ``registry-denied``, ``registry-unreachable``.
    """
    reference = image_base_reference(base, site)
    image = held_image_base(base, engine, site)
    if image is None:
        observer.stage("base", f"pull {reference}")
        image = engine.pull(reference, platform=platform, observer=observer)
    if image.id != base.config_digest and not engine.info().containerd_store:
        raise LockError(
            f"the base's configuration is {image.id}, and {base.config_digest} is locked; was the lock edited by hand?",
            code="lock-invalid",
            where=reference,
            do="Take back the lock that was committed, or lock again.",
        )
    if image.diff_ids != base.diff_ids:
        raise LockError(
            "the engine's copy of the base has other layers than the lock",
            code="base-content-mismatch",
            where=reference,
            detail=f"locked: {', '.join(base.diff_ids)}\nengine: {', '.join(image.diff_ids)}",
            do="Lock again; if the tag was rebuilt under the same digest, ask the registry's owner why.",
        )
    return image


def _same_tag(previous: ImageBaseLock, spec: ImageBaseSpec) -> bool:
    return (previous.image, previous.tag) == (spec.image, spec.tag)


def _still_meant(previous: ImageBaseLock, spec: ImageBaseSpec) -> bool:
    return _same_tag(previous, spec) and spec.digest in (None, previous.index_digest)


def _as_pinned(spec: ImageBaseSpec, resolved: ResolvedImage, client: RegistryClient) -> ResolvedImage:
    """What the spec's digest stands for, when it is not the tag's: one platform of it, or another image."""
    digest = spec.digest or ""
    pinned = client.resolve_digest(spec.image, digest) if digest in resolved.platforms.values() else None
    if pinned is None:
        raise LockError(
            f"the tag {spec.tag} of {spec.image} is now {resolved.index_digest}, not {digest} as the spec says",
            code="tag-digest-mismatch",
            where=f"{spec.image}:{spec.tag}",
            do="Change 'base.digest' to the tag's if the new image is wanted, or name the tag that the digest has.",
        )
    return pinned


def _platform_digest(spec: ImageBaseSpec, resolved: ResolvedImage, platform: str) -> str:
    digest = resolved.platforms.get(platform)
    if digest is not None:
        return digest
    has = ", ".join(sorted(resolved.platforms))
    if not resolved.is_index:
        raise _wrong_platform(spec, resolved.index_digest, has, platform)
    raise LockError(
        f"{spec.image}:{spec.tag} has no {platform}; it has {has}",
        code="no-such-platform",
        where=f"{spec.image}:{spec.tag}",
        do="Take the platform out of 'platforms', or choose a tag that has it.",
    )


def _wrong_platform(spec: ImageBaseSpec, digest: str, found: str, platform: str) -> LockError:
    return LockError(
        f"the base is for {found} alone, and the stack is for {platform}",
        code="digest-platform-mismatch",
        where=f"{spec.image}:{spec.tag}@{digest}",
        do=(
            "Name the index's digest in 'base.digest', which has every platform, not that of one platform; "
            "it would end in 'exec format error'."
        ),
    )
