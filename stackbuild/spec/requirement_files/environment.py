"""The environments a stack is for, as markers see them (PEP 508, environment markers)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

from stackbuild.spec.platforms import MACHINES, marker_values

# The patch level is known only once the base is resolved: markers are asked for both ends of what it may be.
_PATCH_LEVELS = ("0", "99")


@dataclass(frozen=True)
class TargetEnvironments:
    """CPython of one minor version on Linux, for some platforms.

    Attributes:
        python: Minor version such as ``3.12``.
        platforms: For example ``linux/amd64``.
    """

    python: str
    platforms: tuple[str, ...]

    def _all(self) -> Iterator[dict[str, str]]:
        for platform in self.platforms:
            for patch in _PATCH_LEVELS:
                yield marker_values(f"{self.python}.{patch}", MACHINES[platform])

    def answer(
        self,
        marker: str,
        *,
        extras: Iterable[str] = (),
        groups: Iterable[str] = (),
        context: Literal["metadata", "lock_file"] = "metadata",
    ) -> Literal["always", "never", "depends"]:
        """Say whether a marker holds in all, none or some of the environments.

        Args:
            marker: The marker; empty holds always.
            extras: Extras that are selected.
            groups: Dependency groups that are selected (pylock.toml only).
            context: ``lock_file`` for markers of pylock.toml (PEP 751), which see sets of extras and groups.

        Raises:
            InvalidMarker: The text is not a marker.
        """
        if not marker:
            return "always"
        parsed = Marker(marker)
        seen = set()
        for environment in self._all():
            values: dict[str, str | frozenset[str]] = dict(environment)
            if context == "lock_file":
                values |= {"extras": frozenset(extras), "dependency_groups": frozenset(groups)}
            else:
                values["extra"] = frozenset(extras)
            try:
                seen.add(parsed.evaluate(values, context=context))
            except (UndefinedComparison, UndefinedEnvironmentName):
                seen |= {True, False}  # asks for what only the running machine knows
        if len(seen) == 2:
            return "depends"
        return "always" if seen == {True} else "never"


__all__ = ["InvalidMarker", "TargetEnvironments"]
