"""Progress as an observer: the core tells, the command line shows (DESIGN §3.12)."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Told what is going on; may be called from several threads."""

    def stage(self, name: str, detail: str = "") -> None:
        """A stage began, for example ``stage("wheels", "torch 2.13.0+cpu")``."""

    def advance(self, name: str, done: int, total: int | None, unit: str = "bytes") -> None:
        """``done`` of ``total`` units of the named thing (a file, a layer) are there."""

    def note(self, message: str) -> None:
        """A sentence the person should see, such as waiting for another build."""


class SilentObserver:
    """Hears everything, shows nothing."""

    def stage(self, name: str, detail: str = "") -> None:
        """Ignore."""

    def advance(self, name: str, done: int, total: int | None, unit: str = "bytes") -> None:
        """Ignore."""

    def note(self, message: str) -> None:
        """Ignore."""
