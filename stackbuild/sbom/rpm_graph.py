"""Which rpm needs which: requirements looked up in what the others provide and in their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stackbuild.sbom.rpm_conditions import Condition, is_condition, parse_condition
from stackbuild.sbom.rpm_versions import Relation
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.contents.rpm_files import RpmFiles

# Of those that provide one name; in real images it is a handful. Bounds the work in one made to be slow.
_MOST_PROVIDERS = 64
# Whether it holds, and the packages it holds by.
_Answer = tuple[bool, frozenset[int]]
_UNMET: _Answer = (False, frozenset())


class RpmGraph:
    """The dependencies between an image's rpms.

    RPM documentation, "Dependencies", rpm 4.18: a requirement is met by whatever provides its name in a version that
    it asks for; a path also by the package that has this file. Of several that meet it the package itself
    counts, then one of its own architecture. Rich dependencies are evaluated for what is installed.

    Args:
        packages: The image's packages, of all kinds.
        files: Whose its files are.
    """

    def __init__(self, packages: Sequence[SystemPackage], files: RpmFiles) -> None:
        self._packages, self._files = packages, files
        self._providers: dict[str, list[tuple[int, Relation]]] = {}
        self._met: dict[str, tuple[int, ...]] = {}
        rpms = [(number, package) for number, package in enumerate(packages) if package.kind == "rpm"]
        for number, package in rpms:
            for text in package.provides.splitlines():
                self._provide(number, Relation.of(text))
        for number, package in rpms:  # rpm 2 and 3 did not write down that a package provides itself
            self._provide(number, Relation(package.name, "=", package.version))
        counts = Counter(package.architecture for _, package in rpms if package.architecture != "noarch")
        self._main = max(counts, key=lambda name: (counts[name], name), default="")

    def needs(self, number: int) -> frozenset[int]:
        """The packages that one needs, by their numbers; itself may be among them."""
        found: set[int] = set()
        for text in self._packages[number].depends.splitlines():
            requirement = parse_condition(text) if is_condition(text) else Relation.of(text)
            if requirement is not None:
                found |= self._answer(requirement, number)[1]
        return frozenset(found)

    def _provide(self, number: int, relation: Relation) -> None:
        there = self._providers.setdefault(relation.name, [])
        if len(there) < _MOST_PROVIDERS:
            there.append((number, relation))

    def _answer(self, requirement: Condition | Relation, number: int) -> _Answer:
        if isinstance(requirement, Relation) or requirement.operator in ("with", "without"):
            candidates = self._candidates(requirement)
            return (True, frozenset({self._best(candidates, number)})) if candidates else _UNMET
        operator, parts = requirement.operator, requirement.parts
        if operator in ("if", "unless"):
            holds = self._answer(parts[1], number)[0] == (operator == "if")
            if holds:
                return self._answer(parts[0], number)
            return self._answer(parts[2], number) if len(parts) > 2 else (True, frozenset())
        answers = (self._answer(part, number) for part in parts)
        if operator == "or":
            return next((answer for answer in answers if answer[0]), _UNMET)
        # What of an unmet "and" is installed is needed all the same.
        listed = [*answers]
        return all(met for met, _ in listed), frozenset().union(*(found for _, found in listed))

    def _candidates(self, requirement: Condition | Relation) -> Sequence[int]:
        """The packages each of which meets it alone, in their order."""
        if isinstance(requirement, Relation):
            return self._meeting(requirement)
        first, *rest = (frozenset(self._candidates(part)) for part in requirement.parts)
        match requirement.operator:
            case "or":
                return sorted(first.union(*rest))
            case "with" | "and":
                return sorted(first.intersection(*rest))
            case "without":
                return sorted(first.difference(*rest))
        return ()

    def _meeting(self, requirement: Relation) -> Sequence[int]:
        key = f"{requirement.name} {requirement.operator} {requirement.version}"
        if key not in self._met:
            provided = self._providers.get(requirement.name, ())
            found = [number for number, relation in provided if relation.overlaps(requirement)]
            if not found and requirement.name.startswith("/"):
                found = [*self._files.packages_of(requirement.name[1:])[:_MOST_PROVIDERS]]
            self._met[key] = tuple(dict.fromkeys(found))
        return self._met[key]

    def _best(self, candidates: Sequence[int], number: int) -> int:
        if number in candidates:
            return number
        own = self._packages[number].architecture
        wanted = (own if own != "noarch" else self._main, "noarch")
        for architecture in wanted:
            for candidate in candidates:
                if self._packages[candidate].architecture == architecture:
                    return candidate
        return candidates[0]


def unread_conditions(packages: Sequence[SystemPackage]) -> int:
    """How many rich dependencies of rpms cannot be read."""
    texts = {
        text
        for item in packages
        if item.kind == "rpm"
        for text in item.depends.splitlines()
        if is_condition(text)
    }
    return sum(parse_condition(text) is None for text in texts)
