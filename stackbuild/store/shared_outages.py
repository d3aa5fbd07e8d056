"""Servers that are down, remembered for several processes in a file that lives as long as their common work."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from stackbuild.store.outages import Outage, Outages

OUTAGES = "outages.json"  # the file in a folder that is shared


class SharedOutages(Outages):
    """As :class:`Outages`, for several processes of one machine: what one learns all know.

    The file is only there to save waits: where it is gone or cannot be written, each process finds out for itself.

    Args:
        file: In a folder that whoever began the work makes and removes.
        apart: As for :class:`Outages`.
        clock: Gives seconds that only grow, the same for all processes.
    """

    def __init__(self, file: Path, apart: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(apart, clock)
        self._file = file

    @contextmanager
    def _known(self) -> Iterator[dict[str, Outage]]:
        with super()._known() as servers, self._held() as file:
            if file is not None:
                servers.clear()
                servers.update(_read(file))
            before = _written(servers)
            yield servers
            after = _written(servers)
            if file is not None and after != before:
                _write(file, after)

    @contextmanager
    def _held(self) -> Iterator[BinaryIO | None]:
        """The file, for this process alone; None where there is none. A process that ends lets it go."""
        try:
            file = self._file.open("r+b", buffering=0)
        except OSError:
            yield None
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _written(servers: dict[str, Outage]) -> bytes:
    return json.dumps({server: asdict(outage) for server, outage in servers.items()}).encode()


def _read(file: BinaryIO) -> dict[str, Outage]:
    """What the file says; nothing where a process was killed while it wrote, or the disk was full."""
    file.seek(0)
    try:
        return {server: Outage(**outage) for server, outage in json.loads(file.read() or b"{}").items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def _write(file: BinaryIO, content: bytes) -> None:
    try:
        file.seek(0)
        file.truncate()
        file.write(content)
    except OSError:  # a full disk: what is left of it is read as nothing
        return
