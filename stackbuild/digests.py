"""Digests: as registries and engines write them, and short enough for a line.

Docker shows twelve hex digits of an id, with the algorithm before them in docker-py's ``short_id``.
"""

from __future__ import annotations

import hashlib

_SHOWN = 12  # hex digits


def digest_of(content: bytes | bytearray) -> str:
    """``sha256:…`` of some bytes (OCI image specification 1.1, descriptor.md, "Digests")."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def short_digest(digest: str) -> str:
    """A digest with its algorithm, shortened: ``sha256:0123456789ab``.

    Args:
        digest: ``ALGORITHM:HEX``; may be empty.
    """
    algorithm, colon, _ = digest.rpartition(":")
    return f"{algorithm}{colon}{short_hex(digest)}"


def short_hex(digest: str) -> str:
    """The hex digits alone, shortened: ``0123456789ab``, as they may stand in a tag or a name.

    Args:
        digest: ``ALGORITHM:HEX``, or the hex digits of one; may be empty.
    """
    return digest.rpartition(":")[2][:_SHOWN]
