"""The blocks of a tar: headers, content, padding and the end, handed on in large pieces.

USTAR headers, with PAX records (POSIX.1-2008, pax, "pax Interchange Format") only where USTAR cannot hold a value.
"""

from __future__ import annotations

import tarfile
from typing import Protocol

CHUNK = 1 << 20  # bytes that are read, hashed and written at once
_RECORD = 10 * 1024  # tar(5): archives are padded to whole records of 20 blocks
_ZEROS = bytes(_RECORD)


class Sink(Protocol):
    """Where a layer's bytes go."""

    def write(self, data: bytes, /) -> object:
        """Take all of ``data``."""


class TarBlocks:
    """Writes a tar, block by block, to ``sink``."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._size = 0

    def header(self, info: tarfile.TarInfo) -> None:
        """Begin an entry."""
        self.content(_header(info))

    def content(self, block: bytes) -> None:
        """Add to an entry's content."""
        self._pending.append(block)
        self._pending_size += len(block)
        self._size += len(block)
        if self._pending_size >= CHUNK:
            self._flush()

    def pad(self) -> None:
        """End an entry's content: fill up to a whole block."""
        if padding := -self._size % tarfile.BLOCKSIZE:
            self.content(_ZEROS[:padding])

    def end(self) -> None:
        """End the tar and hand on all that is left."""
        marker = 2 * tarfile.BLOCKSIZE
        self.content(bytes(marker + -(self._size + marker) % _RECORD))
        self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._sink.write(b"".join(self._pending) if len(self._pending) > 1 else self._pending[0])
            self._pending, self._pending_size = [], 0


def _header(info: tarfile.TarInfo) -> bytes:
    """USTAR where it can hold the values (its prefix field takes long paths), else PAX."""
    if not info.pax_headers and info.name.isascii() and info.linkname.isascii():
        try:
            return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")
        except ValueError:
            pass  # a name, size or owner too long for USTAR
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
