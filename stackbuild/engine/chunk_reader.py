"""A file object over a stream of chunks, for readers such as ``tarfile``."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator


class ChunkReader(io.RawIOBase):
    """Reads from an iterator of bytes. Use it as a context manager.

    Closing it closes a generator behind it, and so frees what that holds in the engine: ``tarfile`` stops
    at the end-of-archive mark, before the generator has come to its own end.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill as much of ``buffer`` as the current chunk has; 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        """Close, and end the generator."""
        if not self.closed and isinstance(self._chunks, Generator):
            self._chunks.close()
        super().close()
