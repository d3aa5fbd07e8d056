"""An image by its reference, wherever it is: in the engine, else in its registry, without pulling layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stackbuild.annotate.labels import read_pins_label
from stackbuild.annotate.pin_list import PinList
from stackbuild.errors import NotJudgedError
from stackbuild.site_config import SiteConfig


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image's configuration and where it was found.

    Attributes:
        reference: As it was named.
        config: The OCI configuration (its ``config`` part holds environment and labels).
        platform: For example ``linux/amd64``.
        pins: Its pin list; None when it was not built by stackbuild.
    """

    reference: str
    config: dict[str, Any]
    platform: str
    pins: PinList | None


def find_image(reference: str, site: SiteConfig, *, platform: str = "linux/amd64") -> FoundImage:
    """Find an image in the engine, else in its registry.

    Args:
        reference: ``REPOSITORY[:TAG]`` or ``REPOSITORY@DIGEST``.
        site: Mirrors of registries.
        platform: Which one to take of an index.

    Raises:
        LockError: The registry has no such tag or repository.
        NotJudgedError: Neither engine nor registry could be asked (``registry-unreachable`` and its kin).
    """
    config = _from_engine(reference)
    if config is None:
        config = _from_registry(reference, site, platform)
    found = f"{config.get('os', 'linux')}/{config.get('architecture', 'amd64')}"
    return FoundImage(reference, config, found, _pins(config, reference))


def _from_engine(reference: str) -> dict[str, Any] | None:
    from stackbuild.engine.docker_engine import Engine

    try:
        with Engine.connect() as engine:
            image = engine.image(reference)
    except NotJudgedError as error:
        # No engine is no obstacle: the registry can answer.
        if error.code != "engine-unreachable":
            raise
        return None
    if image is None:
        return None
    return {"architecture": image.architecture, "os": image.os, "config": dict(image.config)}


def _from_registry(reference: str, site: SiteConfig, platform: str) -> dict[str, Any]:
    from stackbuild.registry.client import RegistryClient

    repository, tag, digest = split_reference(reference)
    with RegistryClient(site.registries, ca_bundle=site.ca_bundle) as client:
        if digest:
            resolved = client.resolve_digest(repository, digest)
            if resolved is None:
                raise NotJudgedError(
                    f"The registry has no {digest} of {repository}.",
                    code="digest-gone",
                    where=reference,
                    do="Check the digest, or name a tag.",
                )
        else:
            resolved = client.resolve(repository, tag)
        child = resolved.platforms.get(platform) or next(iter(resolved.platforms.values()))
        manifest = client.manifest(repository, child)
        return client.config(repository, manifest["config"]["digest"])


def split_reference(reference: str) -> tuple[str, str, str]:
    """(repository, tag, digest) of a reference; tag ``latest`` when it names neither."""
    repository, _, digest = reference.partition("@")
    head, colon, tag = repository.rpartition(":")
    if colon and "/" not in tag:
        return head, tag, digest
    return repository, "latest", digest


def _pins(config: dict[str, Any], reference: str) -> PinList | None:
    inner = config.get("config")
    labels = inner.get("Labels") if isinstance(inner, dict) else None
    try:
        return read_pins_label(labels or {}, reference).pins
    except NotJudgedError as error:
        if error.code != "no-pin-list":
            raise
        return None
