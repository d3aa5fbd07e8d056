"""Tags that come from what is in the image."""

from __future__ import annotations

import hashlib
import re

from stackbuild.annotate.pin_list import PinList
from stackbuild.digests import short_hex


def content_hash(pins: PinList) -> str:
    """Return the sha256, in hex, over the hashes of lock, files and image: what tells two images of a stack apart."""
    hashes = (pins.lock_sha256, pins.files_sha256, *([pins.image_sha256] if pins.image_sha256 else []))
    return hashlib.sha256("".join(f"{value}\n" for value in hashes).encode()).hexdigest()


def image_version(pins: PinList) -> str:
    """Return ``<torch>-<variant>-py<XY>-<12 of the content hash>``, without the parts the image does not have."""
    parts = []
    if pins.torch:
        parts += [pins.torch, *([pins.torch_variant] if pins.torch_variant else [])]
    if pins.python:
        parts.append("py" + "".join(pins.python.split(".")[:2]))
    parts.append(short_hex(content_hash(pins)))
    # OCI distribution specification 1.1, grammar of <reference>: no + and no other sign but . _ -
    return re.sub(r"[^A-Za-z0-9._-]", "-", "-".join(parts)).lstrip(".-")[:128]


def image_tags(pins: PinList) -> tuple[str, ...]:
    """Return the image's references: ``NAME:<version>``, which never moves, and ``NAME:latest``."""
    return (f"{pins.stack}:{image_version(pins)}", f"{pins.stack}:latest")
