"""Reading the stream of a pull: progress, and a failure told apart by whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackbuild.engine.translate import disk_full, is_disk_full
from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.progress import Observer


class PullStream:
    """Collects one pull's stream and tells an observer the bytes of all layers together."""

    def __init__(self, ref: str, observer: Observer) -> None:
        self._ref = ref
        self._observer = observer
        self._layers: dict[str, tuple[int, int]] = {}

    def feed(self, chunk: Mapping[str, Any]) -> None:
        """Take one decoded chunk.

        Raises:
            StackbuildError: The chunk reports a failure.
        """
        if "error" in chunk or "errorDetail" in chunk:
            raise self.failure(str((chunk.get("errorDetail") or {}).get("message") or chunk.get("error")))
        detail = chunk.get("progressDetail") or {}
        if chunk.get("status") == "Downloading" and detail.get("total"):
            self._layers[str(chunk.get("id"))] = (int(detail["current"]), int(detail["total"]))
            self._observer.advance(
                f"pull {self._ref}",
                sum(done for done, _ in self._layers.values()),
                sum(total for _, total in self._layers.values()),
            )

    def failure(self, message: str) -> StackbuildError:
        """The error for the engine's ``message``."""
        lowered = message.lower()
        if is_disk_full(message):
            return disk_full(self._ref, message)
        if "toomanyrequests" in lowered or "rate limit" in lowered:
            return NotJudgedError(
                "The registry limits how often this machine may pull.",
                code="registry-rate-limited",
                where=self._ref,
                detail=message,
                do="Wait, log in (docker login), or map the registry to a mirror in stackbuild.toml.",
            )
        # Registries say "denied ... may not exist or may require login" of a name that is not there.
        if "denied" in lowered or "unauthorized" in lowered:
            return NotJudgedError(
                "The registry refuses this pull: the repository does not exist, or needs a login.",
                code="registry-denied",
                where=self._ref,
                detail=message,
                do="Check the name; log in with docker login where it is private.",
            )
        if "not found" in lowered or "manifest unknown" in lowered or "no matching manifest" in lowered:
            return LockError(
                "The registry has no such image.",
                code="no-such-image",
                where=self._ref,
                detail=message,
                do="Check the name and tag; if it was there when the stack was locked, lock again.",
            )
        return NotJudgedError(
            "The image could not be pulled.",
            code="registry-unreachable",
            where=self._ref,
            detail=message,
            do="Check the network of the engine, or map the registry to a mirror in stackbuild.toml.",
        )
