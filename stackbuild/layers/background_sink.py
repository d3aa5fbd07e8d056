"""Hashing and writing a layer in a second thread, while the first one unpacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Thread

from stackbuild.layers.tar_writer import Sink

_DEPTH = 8  # blocks of about 1 MiB that may wait


class _BackgroundSink:
    """Hands blocks to another sink in a thread of its own; that sink's failure comes back here."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._queue: Queue[bytes | None] = Queue(_DEPTH)
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="layer-sink", daemon=True)
        self._thread.start()

    def write(self, data: bytes, /) -> int:
        if self._failure is not None:
            raise self._failure
        self._queue.put(data)
        return len(data)

    def finish(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            if self._failure is not None:
                continue  # keep taking, so that the other thread never waits for room
            try:
                self._sink.write(data)
            except BaseException as failure:  # noqa: BLE001 - raised again in the other thread
                self._failure = failure


@contextmanager
def in_background(sink: Sink) -> Iterator[Sink]:
    """A sink whose blocks reach ``sink`` in order, from another thread; all of them by the end.

    Raises:
        BaseException: whatever ``sink`` raised.
    """
    background = _BackgroundSink(sink)
    try:
        yield background
    finally:
        background.finish()
    background.check()
