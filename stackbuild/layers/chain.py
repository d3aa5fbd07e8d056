"""Stacks of layers by their diff IDs: which an engine has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def chain_key(diff_ids: Sequence[str]) -> str:
    """A key for what is known of a stack of layers: the sha256 of their diff IDs in order."""
    return hashlib.sha256("\n".join(diff_ids).encode()).hexdigest()


def present_layers(wanted: Sequence[str], images: Iterable[Sequence[str]]) -> int:
    """How many leading layers some image already has; an engine keeps layers by their whole chain.

    Args:
        wanted: Diff IDs of the image to be, the base's first.
        images: Diff IDs of images the engine has.
    """
    most = 0
    for image in images:
        count = 0
        for ours, theirs in zip(wanted, image, strict=False):
            if ours != theirs:
                break
            count += 1
        most = max(most, count)
    return most
