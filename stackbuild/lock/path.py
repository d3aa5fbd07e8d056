"""Where a stack's lock is; apart from reading it, so that a stack without one costs nothing."""

from __future__ import annotations

from pathlib import Path


def lock_path(spec_path: Path) -> Path:
    """The lock that belongs to a spec: beside it, with the suffix ``.lock``."""
    return spec_path.with_suffix(".lock")
