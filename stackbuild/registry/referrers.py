"""What is attached to a manifest: OCI referrers, through the API or through the tag schema.

OCI distribution specification 1.1, "Listing Referrers" and "Referrers Tag Schema"; OCI image specification 1.1,
"Guidelines for Artifact Usage".
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from stackbuild.digests import digest_of
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_INDEX, OCI_MANIFEST
from stackbuild.registry.writer import EMPTY_JSON, EMPTY_TYPE, RegistryWriter

# The OCI image specification's annotation of a file's name.
_TITLE = "org.opencontainers.image.title"
_PAGES = 50
_TRIES = 8
# Seconds; much longer than a writer takes from reading the index to writing it.
_SETTLED = 0.3


@dataclass(frozen=True)
class Referrer:
    """Something attached to a manifest.

    Attributes:
        digest: Of the attached manifest.
        artifact_type: What it is.
        annotations: What it says of itself.
        descriptor: Its whole descriptor.
    """

    digest: str
    artifact_type: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    descriptor: Mapping[str, Any] = field(default_factory=dict)


def list_referrers(client: RegistryClient, image: str, digest: str) -> tuple[Referrer, ...]:
    """What is attached to a manifest.

    Args:
        client: Reads the registry.
        image: The repository.
        digest: The manifest's.

    Raises:
        NotJudgedError: As ``RegistryClient.resolve``.
    """
    entries = _from_api(client, image, digest)
    if entries is None:
        entries = _from_tag(client, image, digest)
    return tuple(_referrer(entry) for entry in entries)


def attach(
    writer: RegistryWriter,
    image: str,
    subject: Mapping[str, Any],
    *,
    artifact_type: str,
    content: bytes,
    media_type: str,
    name: str,
    annotations: Mapping[str, str],
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Attach a document to a manifest; attaching the same again changes nothing.

    Args:
        writer: Writes the registry.
        image: The repository.
        subject: Descriptor of the manifest it is attached to.
        artifact_type: What the document is.
        content: The document.
        media_type: Its media type.
        name: Its file name, for tools that write it to a disk.
        annotations: Of the attached manifest.
        sleep: How to wait for others that attach at the same time.

    Returns:
        The attached manifest's digest.

    Raises:
        NotJudgedError: ``referrers-contended``, and as ``RegistryClient.resolve``.
        LockError: ``registry-failed``.
    """
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": artifact_type,
        "config": {"mediaType": EMPTY_TYPE, **writer.put_bytes(image, EMPTY_JSON)},
        "layers": [
            {
                "mediaType": media_type,
                **writer.put_bytes(image, content),
                "annotations": {_TITLE: name},
            }
        ],
        "subject": {key: subject[key] for key in ("mediaType", "digest", "size")},
        "annotations": dict(sorted(annotations.items())),
    }
    body = json.dumps(manifest, separators=(",", ":")).encode()
    digest, headers = writer.put_manifest(image, digest_of(body), body, OCI_MANIFEST)
    if "OCI-Subject" not in headers:
        entry = {
            "mediaType": OCI_MANIFEST,
            "digest": digest,
            "size": len(body),
            "artifactType": artifact_type,
            "annotations": manifest["annotations"],
        }
        _add_to_tag(writer, image, str(subject["digest"]), entry, sleep)
    return digest


def attached_content(client: RegistryClient, image: str, referrer: Referrer) -> bytes:
    """The document of something attached.

    Raises:
        LockError: ``digest-gone``.
        NotJudgedError: As ``RegistryClient.resolve``.
    """
    manifest = client.manifest(image, referrer.digest)
    return b"".join(client.blob(image, str(manifest["layers"][0]["digest"])))


def referrers_tag(digest: str) -> str:
    """The tag that lists what is attached to a digest, where the registry has no referrers API."""
    return digest.replace(":", "-", 1)


def _from_api(client: RegistryClient, image: str, digest: str) -> list[Mapping[str, Any]] | None:
    """The API's answer; None where the registry has no such API."""
    endpoint = client.endpoint(image)
    path = f"referrers/{digest}"
    found: list[Mapping[str, Any]] = []
    for _ in range(_PAGES):
        try:
            answer = client.transport.send(
                endpoint, "GET", path, {"Accept": OCI_INDEX}, answers=(200, 404, 405)
            )
        except LockError as error:
            # Before specification 1.1 a registry may answer anything to a path it does not know.
            if error.code != "registry-failed":
                raise
            return None
        if answer.status_code != 200:
            return None
        if not answer.headers.get("Content-Type", "").startswith(OCI_INDEX):
            return None
        found.extend(answer.json().get("manifests") or ())
        following = answer.links.get("next", {}).get("url")
        if not following:
            break
        path = urljoin(answer.url, following)
    return found


def _from_tag(client: RegistryClient, image: str, digest: str) -> list[Mapping[str, Any]]:
    found = client.document(image, referrers_tag(digest))
    if found is None:
        return []
    return list(json.loads(found[0]).get("manifests") or ())


def _add_to_tag(
    writer: RegistryWriter,
    image: str,
    subject: str,
    entry: Mapping[str, Any],
    sleep: Callable[[float], None],
) -> None:
    """Add an entry to the tag schema's index, and look a moment later whether it stayed.

    The registry lets the last writer win, and one who read before this entry was there may write after it.
    """
    for attempt in range(_TRIES):
        entries = _from_tag(writer.client, image, subject)
        if _has(entries, entry):
            return
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": _in_order([*entries, entry])}
        writer.put_manifest(image, referrers_tag(subject), json.dumps(index).encode(), OCI_INDEX)
        # Random, so that two writers do not go in step.
        sleep(_SETTLED * random.uniform(1, 2 + attempt))  # noqa: S311
    if not _has(_from_tag(writer.client, image, subject), entry):
        raise NotJudgedError(
            "others keep attaching to the same image, and the registry lets the last writer win",
            code="referrers-contended",
            where=f"{writer.client.endpoint(image).reference}@{subject}",
            do="Run the same command again.",
        )


def _has(entries: Iterable[Mapping[str, Any]], entry: Mapping[str, Any]) -> bool:
    return any(other.get("digest") == entry["digest"] for other in entries)


def _in_order(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(entries, key=lambda entry: str(entry["digest"]))


def _referrer(entry: Mapping[str, Any]) -> Referrer:
    return Referrer(
        digest=str(entry["digest"]),
        artifact_type=str(entry.get("artifactType") or ""),
        annotations=dict(entry.get("annotations") or {}),
        descriptor=entry,
    )
