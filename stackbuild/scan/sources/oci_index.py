"""Which entry of an OCI index is meant, by name and platform.

OCI image specification 1.1, image-index.md and annotations.md: names are annotations, ``org.opencontainers.image.ref.name``
(skopeo, buildah, buildx) and ``io.containerd.image.name`` (containerd, Docker from 25 on).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stackbuild.errors import ScanError
from stackbuild.registry.documents import platform_name
from stackbuild.scan.sources.interface import mapping, mappings

_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
# BuildKit's attestations (docs/attestations/attestation-storage.md): by annotation and by platform.
_ATTACHED = "vnd.docker.reference.type"


def entry_of(listed: object, *, wanted: str, platform: str, where: str) -> Mapping[str, Any]:
    """The entry of an index that is meant.

    Args:
        listed: The index's ``manifests``, as it was read.
        wanted: Name or digest of the image; empty for the only one.
        platform: The platform that is meant where the index has several, as ``registry.documents`` names it.
        where: The layout, for errors.

    Raises:
        ScanError: ``archive-unknown`` for an index without images, ``archive-has-several``, ``no-such-platform``.
    """
    entries = mappings(listed)
    images = [entry for entry in entries if not _is_attached(entry)] or entries
    if not images:
        raise ScanError(
            "the layout holds no image: its index.json names none",
            code="archive-unknown",
            where=where,
            do="Save the image again.",
        )
    named = [entry for entry in images if not wanted or wanted in (*_names(entry), entry.get("digest"))]
    if len({str(entry.get("digest")) for entry in named}) == 1:
        return named[0]
    if not named:
        raise has_several(where, f"no image of the layout is called {wanted}", _all_names(images))
    platforms = {platform_name(mapping(entry.get("platform"))) for entry in named}
    fitting = [entry for entry in named if platform_name(mapping(entry.get("platform"))) == platform]
    if not fitting and platforms != {""}:
        raise ScanError(
            f"the layout has no image for {platform}",
            code="no-such-platform",
            where=where,
            do=f"Name one of its platforms with --platform: {', '.join(sorted(platforms - {''}))}.",
        )
    fitting = fitting or named
    digests = {str(entry.get("digest")) for entry in fitting}
    if len(digests) > 1:
        raise has_several(
            where, f"the layout holds {len(digests)} images that fit", _all_names(fitting) or sorted(digests)
        )
    return fitting[0]


def has_several(where: str, what: str, names: Sequence[str]) -> ScanError:
    """The error of an archive in which the image that is meant cannot be told.

    Args:
        where: The archive.
        what: What is so.
        names: Those that can be named.
    """
    return ScanError(
        what,
        code="archive-has-several",
        where=where,
        do=f"Name one with --image: {', '.join(names)}." if names else "Save one image into it.",
    )


def _is_attached(entry: Mapping[str, Any]) -> bool:
    return (
        _ATTACHED in mapping(entry.get("annotations"))
        or mapping(entry.get("platform")).get("os") == "unknown"
    )


def _names(entry: Mapping[str, Any]) -> list[str]:
    annotations = mapping(entry.get("annotations"))
    return [str(annotations[key]) for key in _NAMES if annotations.get(key)]


def _all_names(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({name for entry in entries for name in _names(entry)[:1]})
