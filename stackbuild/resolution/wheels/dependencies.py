"""Who depends on whom among the locked wheels, from their own METADATA, for the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from stackbuild.lock.wheels_target import Target


@dataclass(frozen=True)
class Dependencies:
    """The graph of the locked wheels.

    Args:
        requires: Package to the locked packages it depends on, in name order.
        asked: Everything that the direct requirements and the locked wheels ask for.
    """

    requires: Mapping[str, tuple[str, ...]]
    asked: tuple[Requirement, ...]


def dependencies_of(
    locked: Iterable[str],
    metadata: Callable[[str], bytes],
    direct: Iterable[Requirement],
    target: Target,
) -> Dependencies:
    """Walk from the direct requirements; extras count where somebody asks for them.

    Args:
        locked: The locked packages.
        metadata: METADATA by package.
        direct: The direct requirements.
        target: What markers are evaluated for.
    """
    names: frozenset[str] = frozenset(locked)
    declared: dict[str, list[Requirement]] = {}
    extras: dict[str, set[str]] = {name: set() for name in names}
    asked: dict[str, Requirement] = {}
    requires: dict[str, set[str]] = {name: set() for name in names}
    # A locked package that nothing reaches any more (an override cut it off) still has its own edges.
    waiting = sorted(names)
    for requirement in direct:
        wanted_name = canonicalize_name(requirement.name)
        asked[str(requirement)] = requirement
        if wanted_name in names:
            extras[wanted_name] |= {canonicalize_name(extra) for extra in requirement.extras}
    while waiting:
        name = waiting.pop()
        if name not in declared:
            declared[name] = declared_requirements(metadata(name))
        for requirement in declared[name]:
            if not applies(requirement, target, extras[name]):
                continue
            asked[str(requirement)] = requirement
            needed = canonicalize_name(requirement.name)
            if needed not in names:
                continue
            if needed != name:
                requires[name].add(needed)
            wanted = {canonicalize_name(extra) for extra in requirement.extras} - extras[needed]
            if wanted:
                extras[needed] |= wanted
                waiting.append(needed)
    return Dependencies(
        requires={name: tuple(sorted(needed)) for name, needed in requires.items()},
        asked=tuple(requirement for _, requirement in sorted(asked.items())),
    )


def declared_requirements(metadata: bytes) -> list[Requirement]:
    """The Requires-Dist of a METADATA; where one follows no rule, at least its name is taken."""
    found = []
    for text in parse_email(metadata)[0].get("requires_dist", []):
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            name = re.match(r"[A-Za-z0-9._-]+", text)
            found += [Requirement(name.group(0))] if name else []
    return found


def applies(requirement: Requirement, target: Target, extras: Iterable[str] = ()) -> bool:
    """Whether a requirement's marker holds in the target, for one of the extras or for none."""
    if requirement.marker is None:
        return True
    environments: list[dict[str, str]] = [{**target.markers, "extra": extra} for extra in ("", *extras)]
    return any(requirement.marker.evaluate(environment) for environment in environments)
