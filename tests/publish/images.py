"""Images in a registry that have a pin list and next to no content."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile

from stackbuild.annotate.annotations import manifest_annotations
from stackbuild.annotate.labels import image_labels
from stackbuild.annotate.pin_list import PinList
from stackbuild.registry.documents import OCI_MANIFEST
from tests.publish.test_publish import spec
from tests.support.registry import Registry, digest_of


def put_stack_image(
    registry: Registry,
    repository: str,
    tags: list[str],
    pins: PinList,
    *,
    environment: list[str] | None = None,
    architecture: str = "amd64",
    created: str = "2026-01-02T03:04:05Z",
) -> str:
    """Store an image of one small layer whose labels hold ``pins``; returns its manifest's digest."""
    layer = _layer(pins.stack)
    diff_id = digest_of(layer)
    labels = image_labels(spec(), pins, [diff_id], created=created)
    config = {
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {"Env": environment or [], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    }
    blobs = json.dumps(config).encode(), gzip.compress(layer, mtime=0)
    for blob in blobs:
        registry.put_blob(repository, blob)
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": _descriptor("application/vnd.oci.image.config.v1+json", blobs[0]),
        "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar+gzip", blobs[1])],
        "annotations": manifest_annotations(labels, [diff_id], None),
    }
    body = json.dumps(manifest).encode()
    for tag in tags:
        registry.put_manifest(repository, tag, body, OCI_MANIFEST)
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _layer(name: str) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("etc/stack")
        entry.size = len(name)
        archive.addfile(entry, io.BytesIO(name.encode()))
    return raw.getvalue()


def _descriptor(media_type: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}
