"""Layers as their registries and layouts keep them: plain, or compressed with gzip or zstd.

OCI image specification 1.1, layer.md, "Distributable Format": ``tar``, ``tar+gzip``, ``tar+zstd``; what a layer is
compressed with is told by its first bytes (RFC 1952; RFC 8878, zstd with several and skippable frames).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from typing import IO, Any, BinaryIO, cast

from stackbuild.errors import ScanError

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_NOT_READ = {b"\xfd7zX": "xz", b"BZh": "bzip2"}
_ZSTD_SKIPPABLE = (0x184D2A50, 0x184D2A5F)
# What a reader must hold in memory; 2^27 bytes is zstd's own limit, registries' layers ask for 2^23 at most.
_ZSTD_WINDOW = 27
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
    """What a compressed stream holds; damage and bombs are errors of ours."""

    def __init__(self, counted: _Counted, compression: str, where: str) -> None:
        super().__init__()
        self._counted, self._where = counted, where
        stream = cast(BinaryIO, io.BufferedReader(counted, 1 << 17))
        if compression == "zstd":
            self._file, damage = _zstd_file(stream)
        else:
            self._file, damage = gzip.GzipFile(fileobj=stream, mode="rb"), zlib.error
        self._damage = (EOFError, gzip.BadGzipFile, damage)
        self._given = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes, decompressed."""
        try:
            data = self._file.read1(len(buffer)) if len(buffer) else b""
        except self._damage as error:
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
                f"it grows to more than {_MOST_GROWTH} times its compressed size",
                code="layer-bomb",
                where=self._where,
                do="Do not use this image: it is made to fill disk and memory.",
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


def compression_of(head: bytes) -> str:
    """``gzip``, ``zstd`` or empty for neither, by a file's first four bytes."""
    if head[:2] == _GZIP:
        return "gzip"
    first, last = _ZSTD_SKIPPABLE
    return "zstd" if head == _ZSTD or first <= int.from_bytes(head, "little") <= last else ""


def plain_tar(stream: IO[bytes] | io.RawIOBase, where: str) -> BinaryIO:
    """A layer's or archive's tar, decompressed where it is not plain; memory does not grow with it.

    Args:
        stream: The layer as it is kept, at its beginning.
        where: What it is, for errors.

    Raises:
        ScanError: ``layer-compression-unknown``; while reading ``layer-bomb`` and ``layer-damaged``, also where
            zstd asks for more than 128 MiB of window.
    """
    head = stream.read(4) or b""
    for magic, name in _NOT_READ.items():
        if head.startswith(magic):
            raise ScanError(
                f"it is compressed with {name}, which no registry knows and is not read here",
                code="layer-compression-unknown",
                where=where,
                do="Load it into an engine and scan the image there.",
            )
    counted = _Counted(stream, head)
    compression = compression_of(head)
    inner = _Inflated(counted, compression, where) if compression else counted
    return cast(BinaryIO, io.BufferedReader(inner, 1 << 20))


def _zstd_file(stream: BinaryIO) -> tuple[io.BufferedIOBase, type[Exception]]:
    """What a zstd stream holds, and the exception that damage raises."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    options = {int(zstd.DecompressionParameter.window_log_max): _ZSTD_WINDOW}
    return zstd.ZstdFile(stream, options=options), zstd.ZstdError
