"""Reading a file by ranges, so that libraries of gigabytes are never in memory whole."""

from __future__ import annotations

import os
import struct
from typing import IO, BinaryIO

from stackbuild.errors import ScanError

# No table that a reader asks for at once is larger in files that a linker wrote.
LARGEST_READ = 16 << 20
LONGEST_NAME = 4096


class ByteSource:
    """A seekable file that is read by offset and size.

    Args:
        stream: The file; its position is not kept.
        size: Its size in bytes; found by seeking when None.
        start: Where the content begins in it.
    """

    def __init__(self, stream: BinaryIO | IO[bytes], size: int | None = None, start: int = 0) -> None:
        self._stream = stream
        self._start = start
        self.size = stream.seek(0, os.SEEK_END) - start if size is None else size
        # Names may share their bytes; in real files all of them together are shorter than the file all the same.
        self._names_left = self.size + LONGEST_NAME

    def read(self, offset: int, size: int) -> bytes:
        """Exactly ``size`` bytes from ``offset``.

        Raises:
            ScanError: ``file-damaged``: the range leaves the file, or is larger than any table can be.
        """
        if offset < 0 or size < 0 or size > LARGEST_READ or offset + size > self.size:
            raise damaged(f"bytes {offset} to {offset + size} of {self.size} are asked for")
        return self._read(offset, size)

    def read_up_to(self, offset: int, size: int) -> bytes:
        """At most ``size`` bytes from ``offset``; fewer, or none, at the end."""
        if offset < 0 or offset >= self.size:
            return b""
        return self._read(offset, min(size, self.size - offset, LARGEST_READ))

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[int, ...]:
        """The numbers of a fixed layout at ``offset``. Raises as :meth:`read`."""
        return layout.unpack(self.read(offset, layout.size))

    def text(self, offset: int, *, longest: int = LONGEST_NAME) -> str:
        """The zero-terminated text at ``offset``; bytes that are not UTF-8 are escaped.

        Raises:
            ScanError: ``file-damaged``: there is no end within ``longest`` bytes, or one long name is given so often
                that the names would fill memory.
        """
        data = self.read_up_to(offset, min(longest, 256))
        if b"\0" not in data:
            data = self.read_up_to(offset, longest)
        text, end, _ = data.partition(b"\0")
        if not end:
            raise damaged(f"a name at byte {offset} has no end")
        self._names_left -= len(text)
        if self._names_left < 0:
            raise damaged("its names are longer than the file")
        return text.decode("utf-8", "backslashreplace")

    def _read(self, offset: int, size: int) -> bytes:
        self._stream.seek(self._start + offset)
        data = self._stream.read(size)
        if len(data) != size:
            raise damaged(f"it ends at byte {offset + len(data)}, before its size of {self.size}")
        return data


def damaged(detail: str) -> ScanError:
    """The error of a file that is not what its format says; the caller knows which file."""
    return ScanError(
        "the file is damaged or cut off",
        code="file-damaged",
        detail=detail,
        do="Build or pull the image again; if the file is meant to be like this, nothing can be read from it.",
    )
