"""Digests as people read them: short enough for a line, long enough to tell images apart.

Docker shows twelve hex digits of an id, with the algorithm before them in docker-py's ``short_id``.
"""

from __future__ import annotations

_SHOWN = 12  # hex digits


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
