"""The order of Debian versions (deb-version(7), "Sorting algorithm")."""

from __future__ import annotations

import re
from functools import cmp_to_key

_PARTS = re.compile(r"(\D*)(\d*)")


def compare_deb_versions(one: str, other: str) -> int:
    """Negative, zero or positive, as ``one`` is earlier than, equal to or later than ``other``."""
    for mine, theirs in zip(_split(one), _split(other), strict=True):
        order = _compare(mine, theirs)
        if order:
            return order
    return 0


# For ``max`` and ``sorted``.
deb_version_key = cmp_to_key(compare_deb_versions)


def _split(version: str) -> tuple[str, str, str]:
    """Epoch, upstream version and revision."""
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, hyphen, revision = rest.rpartition("-")
    return (epoch, upstream, revision) if hyphen else (epoch, rest, "0")


def _compare(mine: str, theirs: str) -> int:
    """Text and number in turn; ``~`` sorts before the end, letters before all else."""
    ours, others = _PARTS.findall(mine), _PARTS.findall(theirs)
    length = max(len(ours), len(others))
    for index in range(length):
        text, number = ours[index] if index < len(ours) else ("", "")
        their_text, their_number = others[index] if index < len(others) else ("", "")
        left, right = _weights(text), _weights(their_text)
        if left != right:
            return -1 if left < right else 1
        difference = int(number or 0) - int(their_number or 0)
        if difference:
            return difference
    return 0


def _weights(text: str) -> list[int]:
    """What compares as the characters do, with the end of the text between ``~`` and the letters."""
    return [-1 if char == "~" else ord(char) if char.isalpha() else ord(char) + 256 for char in text] + [0]
