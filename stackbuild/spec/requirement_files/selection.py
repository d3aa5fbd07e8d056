"""Checking that the groups and extras a spec names are in the file."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from packaging.utils import canonicalize_name

from stackbuild.spec.requirement_files.interface import refusal


def check_known(path: Path, kind: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a group or extra that the file does not have.

    Raises:
        SpecError: With the closest known name, or all of them.
    """
    names: dict[str, str] = {canonicalize_name(name): name for name in known}
    for name in wanted:
        if canonicalize_name(name) not in names:
            near = difflib.get_close_matches(canonicalize_name(name), list(names), n=1)
            raise refusal(
                path,
                f"it has no {kind} '{name}'",
                f"Did you mean '{names[near[0]]}'?"
                if near
                else f"It has: {', '.join(sorted(names.values()))}."
                if names
                else f"It has no {kind}s at all.",
            )
