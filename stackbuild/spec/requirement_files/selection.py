"""Checking that the groups and extras a spec names are in the file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.utils import canonicalize_name

from stackbuild.spec.requirement_files.interface import refusal
from stackbuild.spelling import closest


def check_known(path: Path, kind: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a group or extra that the file does not have.

    Raises:
        SpecError: With the closest known name, or all of them.
    """
    names: dict[str, str] = {canonicalize_name(name): name for name in known}
    for name in wanted:
        if canonicalize_name(name) not in names:
            near = closest(canonicalize_name(name), names)
            raise refusal(
                path,
                f"it has no {kind} '{name}'",
                f"Did you mean '{names[near]}'?"
                if near
                else f"It has: {', '.join(sorted(names.values()))}."
                if names
                else f"It has no {kind}s at all.",
            )
