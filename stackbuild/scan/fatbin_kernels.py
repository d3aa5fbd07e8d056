"""Telling whether an entry of a fat binary holds a kernel at all.

A compiler or device linker that finds nothing to compile leaves a cubin without kernels behind, for its oldest
architecture (nvlink of CUDA 13: sm_75). It says nothing of where the library runs: the kernels of cuFFT are in a
data section, those of cuFFTW nowhere. Compressed entries bear the flag of LZ4 (CUDA up to 12) or zstd (CUDA 13);
the block format of LZ4 is that of its own "Block Format Description".
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from stackbuild.scan.byte_source import ByteSource

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LZ4, _ZSTD = 0x2000, 0x8000
# Without a kernel a cubin has some 1,900 bytes and PTX some 300; with one a cubin has more than this.
SMALL = 4096
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Payload:
    """Where an entry's code lies in the file, and how it is kept."""

    offset: int
    stored: int
    whole: int
    flags: int

    @property
    def may_be_empty(self) -> bool:
        """Whether it is small enough to hold no kernel."""
        return self.whole <= SMALL and self.stored <= SMALL


def holds_kernel(source: ByteSource, payload: Payload) -> bool:
    """False for a cubin or PTX that is read and has no kernel; true for every other one, damaged ones too.

    Args:
        source: The file.
        payload: The entry's code.
    """
    if not payload.may_be_empty:
        return True
    code = _unpacked(source.read_up_to(payload.offset, payload.stored), payload)
    if code.startswith(_ELF):
        return b".text." in code  # each kernel has a section of that name and its own
    text = code.rstrip(b"\0 \n\r\t")
    if b".version" in text and b".target" in text:
        return b".entry" in text or b".func" in text
    return True


def _unpacked(data: bytes, payload: Payload) -> bytes:
    if payload.flags & _ZSTD:
        try:
            return zstd.ZstdDecompressor().decompress(data, SMALL)
        except zstd.ZstdError:
            return b""
    return _lz4_block(data, payload.whole) if payload.flags & _LZ4 else data


def _lz4_block(data: bytes, whole: int) -> bytes:
    """An LZ4 block of at most ``whole`` bytes; empty when it is damaged."""
    made, at = bytearray(), 0
    try:
        while at < len(data) and len(made) < whole:
            token = data[at]
            literals, at = _length(data, at + 1, token >> 4)
            made += data[at : at + literals]
            at += literals
            if len(made) >= whole:
                break
            distance = data[at] | data[at + 1] << 8
            length, at = _length(data, at + 2, token & 15)
            if not 0 < distance <= len(made):
                return b""
            for _ in range(min(length + 4, whole - len(made))):
                made.append(made[-distance])
    except IndexError:
        return b""
    return bytes(made[:whole])


def _length(data: bytes, at: int, first: int) -> tuple[int, int]:
    """A length whose first four bits are ``first``, and where what follows it begins."""
    length = first
    if first == 15:
        while True:
            length += data[at]
            at += 1
            if data[at - 1] != 255:
                break
    return length, at
