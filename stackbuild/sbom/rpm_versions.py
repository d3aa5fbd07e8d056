"""rpm's order of versions, and whether what one package provides is what another asks for.

rpm 4.18, ``rpmio/rpmvercmp.c`` and ``rpmverOverlap`` of ``lib/rpmver.c``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_PARTS = re.compile(r"[0-9]+|[A-Za-z]+|[~^]")
# A tilde is older than the end, a caret newer; letters are newer than both, and numbers than letters.
_TILDE, _END, _CARET, _LETTERS, _NUMBER = range(5)
_RELATION = re.compile(r"(?P<name>\S+)(?:\s+(?P<operator>[<>=]{1,2})\s+(?P<version>\S+))?")
_EPOCH = re.compile(r"(\d*):(.*)", re.DOTALL)

VersionKey = tuple[tuple[int, int, str], ...]


def rpm_version_key(text: str) -> VersionKey:
    """A version, or a release, as a key that sorts as rpm sorts."""
    return (*map(_part, _PARTS.findall(text)), (_END, 0, ""))


def _part(text: str) -> tuple[int, int, str]:
    if text[0] in "~^":
        return (_TILDE if text == "~" else _CARET), 0, ""
    if not text[0].isdigit():
        return _LETTERS, 0, text
    digits = text.lstrip("0")
    return _NUMBER, len(digits), digits


@dataclass(frozen=True)
class Relation:
    """A name, and the versions of it that are provided or asked for.

    Attributes:
        name: A package's, a library's, a path, …
        operator: ``<``, ``<=``, ``=``, ``>=``, ``>``; empty for every version.
        version: With epoch and release where they are stated; empty for every version.
    """

    name: str
    operator: str = ""
    version: str = ""

    @classmethod
    def of(cls, text: str) -> Relation:
        """The relation that rpm prints as ``NAME`` or ``NAME OPERATOR VERSION``."""
        match = _RELATION.fullmatch(text)
        return cls(match["name"], match["operator"] or "", match["version"] or "") if match else cls(text)

    @cached_property
    def _epoch_and_version(self) -> tuple[VersionKey, VersionKey]:
        epoch, version, _ = _split(self.version)
        return rpm_version_key(epoch or "0"), rpm_version_key(version)

    @cached_property
    def _release(self) -> VersionKey | None:
        release = _split(self.version)[2]
        return rpm_version_key(release) if release else None

    def overlaps(self, other: Relation) -> bool:
        """Whether there is a version that both name."""
        if not self.version or not other.version:
            return True
        mine, theirs = self._epoch_and_version, other._epoch_and_version
        if mine == theirs and (self._release is None or other._release is None):
            # One side names all releases of this version.
            if (self._release and "=" in other.operator) or (other._release and "=" in self.operator):
                return True
            order = 0
        else:
            order = _order((*mine, self._release or ()), (*theirs, other._release or ()))
        if order < 0:
            return ">" in self.operator or "<" in other.operator
        if order > 0:
            return "<" in self.operator or ">" in other.operator
        return any(sign in self.operator and sign in other.operator for sign in "<=>")


def _order(left: tuple[VersionKey, ...], right: tuple[VersionKey, ...]) -> int:
    return (left > right) - (left < right)


def _split(version: str) -> tuple[str, str, str]:
    """Epoch, version and release; each may be empty."""
    match = _EPOCH.fullmatch(version)
    epoch, rest = (match[1], match[2]) if match else ("", version)
    stem, dash, release = rest.rpartition("-")
    return (epoch, stem, release) if dash else (epoch, rest, "")
