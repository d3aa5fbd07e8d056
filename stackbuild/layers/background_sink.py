"""Hashing and writing a layer in a second thread, while the first one unpacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread

from stackbuild.layers.tar_writer import Sink

_DEPTH = 8  # blocks of about 1 MiB that may wait


class _BackgroundSink:
    """Hands blocks to another sink in a thread of its own; that sink's failure comes back here.

    Queue, and all else that is made of threading.Condition, is no good here: an interrupt in the middle of its
    put() leaves it locked, or the other thread waiting for ever. SimpleQueue's put() is one step (bpo-14976).
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._blocks: SimpleQueue[bytes | None] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(_DEPTH):
            self._room.put(None)
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="layer-sink", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def write(self, data: bytes, /) -> int:
        if self._failure is not None:
            raise self._failure
        self._room.get()
        self._blocks.put(data)
        return len(data)

    def finish(self) -> None:
        self._blocks.put(None)
        if self._thread.is_alive():  # an interrupt may have come before it had begun
            self._thread.join()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        while (data := self._blocks.get()) is not None:
            self._room.put(None)
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
        background.start()
        yield background
    finally:
        background.finish()
    background.check()
