"""Reading the GPU code in a library: for which architectures it carries cubins and PTX.

NVIDIA publishes no description of the container; its layout is that of ``fatbinary`` and was checked against
``cuobjdump`` (CUDA 13) on files of CUDA 11 to 13. A section ``.nv_fatbin`` (``__nv_relfatbin`` in objects
made with ``-rdc``) is a row of containers, each a header and a row of entries. Only headers are read, never
the code itself, but for entries so small that they may be empty; so a library of gigabytes costs a few thousand
small reads. Libraries that load their kernels themselves keep the same containers in data sections
(cuFFT of CUDA 12 and 13: ``.ldata``); those are searched where the sections made for it hold no kernel.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.elf import ElfReader
from stackbuild.scan.fatbin_kernels import Payload, holds_kernel

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_DATA_SECTIONS = (".ldata", ".lrodata", ".data", ".rodata")
_MAGIC = 0xBA55ED50
_MAGIC_BYTES = struct.pack("<I", _MAGIC)
# Container: magic, version, size of this header, size of the entries after it.
_CONTAINER = struct.Struct("<IHHQ")
# Entry: kind, version, size of this header, size of the code (padded), its size when it is compressed; at byte 28
# the architecture, at 40 the flags, at 56 the size it is decompressed to.
_ENTRY = struct.Struct("<HHIQI8xI8xQ8xQ")
_PTX, _CUBIN, _INTERMEDIATE = 1, 2, 8
_ARCHITECTURE_SPECIFIC, _FAMILY_SPECIFIC = 0x100000, 0x200000
_MOST_ENTRIES = 1 << 20
_MOST_GAPS = 1 << 16  # between containers lies padding, and in data sections what refers to them
_MOST_SMALL = 64  # entries that may be empty: a library with more of them has kernels
_ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_(\d+)([af]?)")


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The GPU code in one library, as (architecture, number of entries), lowest architecture first.

    Attributes:
        cubins: For example ``("sm_80", 308)``, ``("sm_90a", 600)``.
        ptx: For example ``("compute_90", 12)``.
        intermediate: Link-time intermediate code, ``("lto_80", 3)``: nothing runs it before a link.
        damaged: True when the containers break off or are not what their headers say.
        empty: True when none of them holds a kernel: it is only what a compiler leaves behind.
    """

    cubins: tuple[tuple[str, int], ...] = ()
    ptx: tuple[tuple[str, int], ...] = ()
    intermediate: tuple[tuple[str, int], ...] = ()
    damaged: bool = False
    empty: bool = False

    @property
    def sm(self) -> tuple[str, ...]:
        """The architectures of the cubins."""
        return tuple(name for name, _ in self.cubins)

    @property
    def compute(self) -> tuple[str, ...]:
        """The architectures of the PTX."""
        return tuple(name for name, _ in self.ptx)


def architecture_order(name: str) -> tuple[int, str]:
    """A key that sorts ``sm_90`` before ``sm_90a`` before ``sm_100``."""
    match = _ARCHITECTURE.fullmatch(name)
    return (int(match[1]), match[2]) if match else (0, name)


def read_gpu_code(reader: ElfReader, source: ByteSource) -> GpuCode | None:
    """The GPU code of an ELF file; None when it has no such section.

    Args:
        reader: The file.
        source: The same file.

    Raises:
        ScanError: ``file-damaged``: the section headers cannot be read.
    """
    sections = [section for section in reader.sections() if reader.section_bytes_in_file(section)]
    made_for_it = [(section.offset, section.size) for section in sections if section.name in SECTIONS]
    if not made_for_it:
        return None
    code = _counted(source, made_for_it)
    if not code.empty:
        return code
    data = [(section.offset, section.size) for section in sections if section.name in _DATA_SECTIONS]
    return _counted(source, [*made_for_it, *data])


def read_fatbin(source: ByteSource) -> GpuCode:
    """The GPU code of a bare ``.fatbin`` file."""
    return _counted(source, [(0, source.size)])


def _counted(source: ByteSource, ranges: Sequence[tuple[int, int]]) -> GpuCode:
    counts: dict[int, Counter[str]] = {_PTX: Counter(), _CUBIN: Counter(), _INTERMEDIATE: Counter()}
    broken, total = False, 0
    small: list[Payload] = []
    for start, size in ranges:
        for entry in _entries(source, start, size):
            if entry is None:
                broken = True
            elif entry[0] in counts:
                kind, name, payload = entry
                counts[kind][name] += 1
                if kind != _INTERMEDIATE and payload.may_be_empty and len(small) == total < _MOST_SMALL:
                    small.append(payload)
                total += 1
    cubins, ptx, intermediate = (
        tuple(sorted(counts[kind].items(), key=lambda item: architecture_order(item[0])))
        for kind in (_CUBIN, _PTX, _INTERMEDIATE)
    )
    empty = len(small) == total and not broken and not any(holds_kernel(source, item) for item in small)
    return GpuCode(cubins, ptx, intermediate, broken, empty)


def _entries(source: ByteSource, start: int, size: int) -> Iterator[tuple[int, str, Payload] | None]:
    """Kind, architecture and code of every entry in a range of the file; None where it is damaged."""
    end = min(start + size, source.size)
    if end < start + size:
        yield None
    search = _Search(source, end)
    at, left, gaps = start, _MOST_ENTRIES, _MOST_GAPS
    while at + _CONTAINER.size <= end:
        magic, _, header_size, content_size = source.unpack(_CONTAINER, at)
        if magic != _MAGIC or header_size < _CONTAINER.size:
            gaps -= 1
            if gaps < 0:
                yield None
                return
            at = search.container(at + 1)
            continue
        inner = at + header_size
        stop = inner + content_size
        if stop > end:
            yield None
            stop = end
        while inner < stop:
            left -= 1
            if inner + _ENTRY.size > stop or left < 0:
                yield None
                break
            kind, _, entry_size, code_size, packed, architecture, flags, whole = source.unpack(_ENTRY, inner)
            if entry_size < _ENTRY.size or inner + entry_size + code_size > stop:
                yield None
                break
            payload = Payload(inner + entry_size, packed or code_size, whole or code_size, flags)
            yield kind, _name(kind, architecture, flags), payload
            inner += entry_size + code_size
        if left < 0:
            return
        at = (stop + 7) & ~7


def _name(kind: int, architecture: int, flags: int) -> str:
    prefix = {_PTX: "compute", _INTERMEDIATE: "lto"}.get(kind, "sm")
    suffix = "a" if flags & _ARCHITECTURE_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    return f"{prefix}_{architecture}{suffix}"


class _Search:
    """Looks for containers after padding or unknown bytes, each block of the file once as long as it goes forward."""

    _BLOCK = 1 << 20

    def __init__(self, source: ByteSource, end: int) -> None:
        self._source, self._end = source, end
        self._start, self._block = 0, b""

    def container(self, at: int) -> int:
        """Where the next container begins at ``at`` or after it; the end when there is none."""
        while at < self._end:
            if not self._start <= at <= self._start + len(self._block) - len(_MAGIC_BYTES):
                self._start = at
                self._block = self._source.read_up_to(at, min(self._BLOCK, self._end - at))
            found = self._block.find(_MAGIC_BYTES, at - self._start)
            if found >= 0:
                return self._start + found
            if len(self._block) < len(_MAGIC_BYTES) or self._start + len(self._block) >= self._end:
                return self._end
            at = self._start + len(self._block) - len(_MAGIC_BYTES) + 1
        return self._end
