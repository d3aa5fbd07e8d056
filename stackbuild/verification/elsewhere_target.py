"""Finds the image that is to run, or ran, elsewhere: in the engine where there is one, else in its registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from stackbuild.annotate.image_reference import split_reference
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.registry.client import RegistryClient
from stackbuild.site_config import SiteConfig
from stackbuild.spec.load import load_spec
from stackbuild.spec.model import Platform
from stackbuild.verification.elsewhere import ElsewhereImage
from stackbuild.verification.target import (
    VerifyTarget,
    promise_by_labels,
    supported_platform,
    target_of_spec,
)


def find_elsewhere(reference: str, spec_path: Path | None, site: SiteConfig) -> ElsewhereImage:
    """The image with its digests and its promise.

    Args:
        reference: The image; with a spec an empty one is the stack's own.
        spec_path: The spec that promises; None for what the image's labels say.
        site: Mirrors of registries.

    Raises:
        NotJudgedError: ``image-missing``, ``platform-not-supported``; registry or engine cannot be used.
        LockError: The lock is missing; the registry has no such image.
    """
    if spec_path is not None and not reference:
        spec = load_spec(spec_path).spec
        reference = spec.external or f"{spec.name}:latest"
    image = _from_engine(reference)
    if image is not None:
        return _of_engine(reference, image[0], image[1], spec_path)
    return _of_registry(reference, spec_path, site)


def _from_engine(reference: str) -> tuple[ImageInfo, bool] | None:
    """The image, and whether its id is its configuration's digest; None without engine or image."""
    try:
        with Engine.connect() as engine:
            image = engine.image(reference)
            return (image, not engine.info().containerd_store) if image is not None else None
    except NotJudgedError as error:
        if error.code != "engine-unreachable":
            raise
        return None


def _of_engine(
    reference: str, image: ImageInfo, id_is_config: bool, spec_path: Path | None
) -> ElsewhereImage:
    repository = split_reference(reference)[0]
    digests = sorted(image.repo_digests, key=lambda entry: entry.partition("@")[0] != repository)
    platform = supported_platform(f"{image.os}/{image.architecture}")
    target = _target(reference, image.config, image.diff_ids, platform, spec_path)
    return ElsewhereImage(
        reference=reference,
        runs=digests[0] if digests else "",
        id=image.id,
        config_digest=image.id if id_is_config else "",
        diff_ids=image.diff_ids,
        platform=platform,
        promise=target.promise,
        waivers=target.waivers,
    )


def _of_registry(reference: str, spec_path: Path | None, site: SiteConfig) -> ElsewhereImage:
    repository, tag, digest = split_reference(reference)
    with RegistryClient(site.registries, ca_bundle=site.ca_bundle) as client:
        resolved = client.resolve_digest(repository, digest) if digest else client.resolve(repository, tag)
        if resolved is None:
            raise LockError(
                "The registry has no such image.", code="digest-gone", where=reference, do="Check the digest."
            )
        named = next((name for name in get_args(Platform) if name in resolved.platforms), None)
        platform = supported_platform(named or next(iter(resolved.platforms)))
        child = resolved.platforms[platform]
        config_digest = str(client.manifest(repository, child)["config"]["digest"])
        document = client.config(repository, config_digest)
    diff_ids = tuple(str(entry) for entry in document.get("rootfs", {}).get("diff_ids", ()))
    target = _target(reference, document.get("config") or {}, diff_ids, platform, spec_path)
    return ElsewhereImage(
        reference=reference,
        runs=f"{repository}@{child}",
        id="",
        config_digest=config_digest,
        diff_ids=diff_ids,
        platform=platform,
        promise=target.promise,
        waivers=target.waivers,
    )


def _target(
    reference: str,
    config: Mapping[str, Any],
    diff_ids: tuple[str, ...],
    platform: Platform,
    spec_path: Path | None,
) -> VerifyTarget:
    if spec_path is not None:
        return target_of_spec(spec_path, reference, platform)
    return VerifyTarget(reference, promise_by_labels(reference, config, diff_ids, platform))
