"""Servers that are down, remembered by all who would ask them in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

_FAILURES = 3


@dataclass
class Outage:
    """How often one server failed in a row, when that was counted last, and with which words."""

    failures: int = 0
    counted: float = 0.0
    reason: str = ""


class Outages:
    """Counts failures of servers; after three in a row a server counts as down. Safe for several threads.

    Args:
        apart: Seconds within which failures count as one: requests that are under way together fail together.
        clock: Gives seconds that only grow.
    """

    def __init__(self, apart: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._apart = apart
        self._clock = clock
        self._guard = threading.Lock()
        self._servers: dict[str, Outage] = {}

    def down(self, url: str) -> str | None:
        """What the server of a URL failed with, when it counts as down."""
        with self._known() as servers:
            outage = servers.get(_server(url))
            return outage.reason if outage is not None and outage.failures >= _FAILURES else None

    def failed(self, url: str, reason: str) -> None:
        """Note that the server gave no answer, or only said that it fails."""
        with self._known() as servers:
            now = self._clock()
            outage = servers.setdefault(_server(url), Outage())
            if not outage.failures or now - outage.counted >= self._apart:
                outage.failures += 1
                outage.counted = now
            outage.reason = reason

    def answered(self, url: str) -> None:
        """Note that the server is up, whatever it answered."""
        with self._known() as servers:
            servers.pop(_server(url), None)

    def forget(self) -> None:
        """Begin anew: servers that were down may be up."""
        with self._known() as servers:
            servers.clear()

    @contextmanager
    def _known(self) -> Iterator[dict[str, Outage]]:
        """What is known of servers, for the block alone to read and change."""
        with self._guard:
            yield self._servers


def _server(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]
