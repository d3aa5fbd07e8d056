"""What registries answer: manifests, indexes and their media types.

OCI image specification 1.1; Docker's media types of the same things.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from stackbuild.errors import NotJudgedError
from stackbuild.registry.reference import Endpoint

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@dataclass(frozen=True)
class ResolvedImage:
    """What a tag stands for.

    Attributes:
        index_digest: The digest that the tag names: of the index, or of the manifest when it has no index.
        media_type: Its media type.
        platforms: Platform (``linux/amd64``) → digest of its manifest.
    """

    index_digest: str
    media_type: str
    platforms: Mapping[str, str]

    @property
    def is_index(self) -> bool:
        """False when the tag names one platform's manifest directly."""
        return self.media_type in (OCI_INDEX, DOCKER_INDEX)


def platforms_of(endpoint: Endpoint, index: Mapping[str, Any]) -> dict[str, str]:
    """Platform (``linux/amd64``) → digest, as an index names them; what is attached to it is left out.

    Raises:
        NotJudgedError: ``registry-unreachable``: it is no index of a registry.
    """
    try:
        return _named_platforms(index["manifests"])
    except (KeyError, TypeError, AttributeError) as error:
        raise not_its_answer(endpoint, "its index has no list of manifests") from error


def _named_platforms(entries: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    platforms: dict[str, str] = {}
    for entry in entries:
        name = platform_name(entry.get("platform") or {})
        if name:  # else attestations and other attachments of the index
            platforms.setdefault(name, str(entry["digest"]))
    return platforms


def platform_name(platform: Mapping[str, Any]) -> str:
    """A platform of an index as it is named here: ``linux/amd64``, ``linux/arm/v7``; empty where it says none.

    Of 64-bit platforms the variant is left out: ``v8`` of arm64 says nothing, and indexes give it or do not.
    """
    system, architecture = str(platform.get("os") or ""), str(platform.get("architecture") or "")
    if system in ("", "unknown") or architecture in ("", "unknown"):
        return ""
    variant = platform.get("variant") if architecture == "arm" else None
    return f"{system}/{architecture}" + (f"/{variant}" if variant else "")


def parsed(endpoint: Endpoint, body: bytes) -> dict[str, Any]:
    """A registry's JSON object.

    Raises:
        NotJudgedError: ``registry-unreachable``: it is none.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise not_its_answer(endpoint, "it is not JSON") from error
    if not isinstance(document, dict):
        raise not_its_answer(endpoint, "it is not a JSON object")
    return cast(dict[str, Any], document)


def not_its_answer(endpoint: Endpoint, why: str) -> NotJudgedError:
    """The error for what no registry would answer."""
    return NotJudgedError(
        f"the registry's answer is none of a registry: {why}",
        code="registry-unreachable",
        where=endpoint.reference,
        do="Something between here and the registry answers in its place; check proxy and mirror.",
    )
