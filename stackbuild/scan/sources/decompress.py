"""Layers as their registries and layouts keep them: plain, or compressed with gzip."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from typing import IO, Any, BinaryIO, cast

from stackbuild.errors import ScanError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Real layers shrink to a tenth at best; zeros shrink to a thousandth.
_MOST_GROWTH = 200
_GROWTH_COUNTS_FROM = 1 << 30


class LimitedFile(io.RawIOBase):
    """A range of a file as a stream of its own."""

    def __init__(self, stream: IO[bytes], start: int, size: int) -> None:
        super().__init__()
        self._stream, self._start, self._size, self._at = stream, start, size, 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes of the range."""
        size = min(len(buffer), self._size - self._at)
        if size <= 0:
            return 0
        self._stream.seek(self._start + self._at)
        data = self._stream.read(size)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Counted(io.RawIOBase):
    """A stream that knows how much was read of it."""

    def __init__(self, stream: IO[bytes] | io.RawIOBase, head: bytes) -> None:
        super().__init__()
        self._stream, self._head = stream, head
        self.count = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The head first, then the stream."""
        if self._head:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            data = self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class _Inflated(io.RawIOBase):
    """What a gzip stream holds; damage and bombs are errors of ours."""

    def __init__(self, counted: _Counted, where: str) -> None:
        super().__init__()
        self._counted, self._where = counted, where
        self._gzip = gzip.GzipFile(fileobj=cast(BinaryIO, io.BufferedReader(counted, 1 << 17)), mode="rb")
        self._given = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes, decompressed."""
        try:
            data = self._gzip.read1(len(buffer)) if len(buffer) else b""
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ScanError(
                "the layer's compressed data is damaged or cut off",
                code="layer-damaged",
                where=self._where,
                detail=str(error),
                do="Save or pull the image again.",
            ) from error
        self._given += len(data)
        if self._given > max(_GROWTH_COUNTS_FROM, self._counted.count * _MOST_GROWTH):
            raise ScanError(
                f"the layer grows to more than {_MOST_GROWTH} times its compressed size",
                code="layer-bomb",
                where=self._where,
                do="Do not use this image: its layer is made to fill disk and memory.",
            )
        buffer[: len(data)] = data
        return len(data)


class CheckedLayer:
    """A layer's tar that is hashed while it is read, so that nothing is kept of one under another's diff ID.

    Args:
        stream: The tar, not compressed.
        diff_id: What its sha256 must be.
        where: What the layer is, for errors.
    """

    def __init__(self, stream: IO[bytes], diff_id: str, where: str) -> None:
        self._stream, self._diff_id, self._where = stream, diff_id, where
        self._digest = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        data = self._stream.read(size)
        self._digest.update(data)
        return data

    def check(self) -> None:
        """Read what is left, and compare.

        Raises:
            ScanError: ``layer-changed``; ``layer-damaged`` where what is left breaks off.
        """
        while self.read(1 << 20):
            pass
        got = f"sha256:{self._digest.hexdigest()}"
        if got != self._diff_id:
            raise ScanError(
                f"the layer's content has diff ID {got}, and the image's configuration says {self._diff_id}",
                code="layer-changed",
                where=self._where,
                do="Save or pull the image again; if it stays so, somebody changed the layer.",
            )


def plain_tar(stream: IO[bytes] | io.RawIOBase, where: str) -> BinaryIO:
    """A layer's tar, decompressed where it is not plain.

    Args:
        stream: The layer as it is kept, at its beginning.
        where: What it is, for errors.

    Raises:
        ScanError: ``layer-compression-unknown``; while reading ``layer-damaged`` and ``layer-bomb``.
    """
    head = stream.read(4) or b""
    if head == _ZSTD:
        raise ScanError(
            "the layer is compressed with zstd, which is not read here",
            code="layer-compression-unknown",
            where=where,
            do="Pull the image with an engine and scan it there.",
        )
    counted = _Counted(stream, head)
    if head[:2] == _GZIP:
        return cast(BinaryIO, io.BufferedReader(_Inflated(counted, where), 1 << 20))
    return cast(BinaryIO, io.BufferedReader(counted, 1 << 20))
