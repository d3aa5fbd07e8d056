"""Digests as registries and engines write them."""

from __future__ import annotations

import hashlib


def digest_of(content: bytes | bytearray) -> str:
    """``sha256:…`` of some bytes (OCI image specification 1.1, descriptor.md, "Digests")."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
