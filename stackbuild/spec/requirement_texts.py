"""Reading the texts of a spec that stand for versions and requirements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from stackbuild.spec.model import StackSpec

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def version_of(text: str) -> Version | None:
    """Return the version that a text is (PEP 440), or None."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def only_version(requirement: Requirement) -> Version | None:
    """Return the version of a requirement that allows exactly one."""
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator in ("==", "===") and "*" not in specifiers[0].version:
        return version_of(specifiers[0].version)
    return None


def requirement_of(text: str) -> Requirement | None:
    """Return the requirement that a text is (PEP 508), or None."""
    # Only a spec that has requirements pays for importing what parses them.
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def requirements_of(spec: StackSpec) -> list[tuple[int, Requirement]]:
    """Return the requirements written out under ``packages``, with their positions."""
    parsed = (
        (index, requirement_of(item)) for index, item in enumerate(spec.packages) if isinstance(item, str)
    )
    return [(index, requirement) for index, requirement in parsed if requirement is not None]
