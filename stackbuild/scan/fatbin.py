"""Reading the GPU code in a library: for which architectures it carries cubins and PTX.

NVIDIA publishes no description of the container; its layout is that of ``fatbinary`` and was checked against
``cuobjdump`` (CUDA 13) on files of CUDA 11 to 13. A section ``.nv_fatbin`` (``__nv_relfatbin`` in objects
made with ``-rdc``) is a row of containers, each a header and a row of entries. Only headers are read, never
the code itself, so that a library of gigabytes costs a few thousand small reads.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.elf import ElfReader

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_MAGIC = 0xBA55ED50
_MAGIC_BYTES = struct.pack("<I", _MAGIC)
# Container: magic, version, size of this header, size of the entries after it.
_CONTAINER = struct.Struct("<IHHQ")
# Entry: kind, version, size of this header, size of the code (padded); at byte 28 the architecture, at 40 the flags.
_ENTRY = struct.Struct("<HHIQ12xI8xQ")
_PTX, _CUBIN, _INTERMEDIATE = 1, 2, 8
_ARCHITECTURE_SPECIFIC, _FAMILY_SPECIFIC = 0x100000, 0x200000
_MOST_ENTRIES = 1 << 20
_MOST_GAPS = 1 << 10  # what is not a container is searched in blocks: bounds the work on a hostile file
_ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_(\d+)([af]?)")


@dataclass(frozen=True, slots=True)
class GpuCode:
    """The GPU code in one library, as (architecture, number of entries), lowest architecture first.

    Attributes:
        cubins: For example ``("sm_80", 308)``, ``("sm_90a", 600)``.
        ptx: For example ``("compute_90", 12)``.
        intermediate: Link-time intermediate code, ``("lto_80", 3)``: nothing runs it before a link.
        damaged: True when the containers break off or are not what their headers say.
    """

    cubins: tuple[tuple[str, int], ...] = ()
    ptx: tuple[tuple[str, int], ...] = ()
    intermediate: tuple[tuple[str, int], ...] = ()
    damaged: bool = False

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
    sections = [
        section
        for section in reader.sections()
        if section.name in SECTIONS and reader.section_bytes_in_file(section)
    ]
    if not sections:
        return None
    return _counted(entry for section in sections for entry in _entries(source, section.offset, section.size))


def read_fatbin(source: ByteSource) -> GpuCode:
    """The GPU code of a bare ``.fatbin`` file."""
    return _counted(_entries(source, 0, source.size))


def _counted(entries: Iterator[tuple[int, str] | None]) -> GpuCode:
    counts: dict[int, Counter[str]] = {_PTX: Counter(), _CUBIN: Counter(), _INTERMEDIATE: Counter()}
    broken = False
    for entry in entries:
        if entry is None:
            broken = True
        elif entry[0] in counts:
            counts[entry[0]][entry[1]] += 1
    cubins, ptx, intermediate = (
        tuple(sorted(counts[kind].items(), key=lambda item: architecture_order(item[0])))
        for kind in (_CUBIN, _PTX, _INTERMEDIATE)
    )
    return GpuCode(cubins, ptx, intermediate, broken)


def _entries(source: ByteSource, start: int, size: int) -> Iterator[tuple[int, str] | None]:
    """(kind, architecture) of every entry in a range of the file; None where it is damaged."""
    end = min(start + size, source.size)
    if end < start + size:
        yield None
    at, left, gaps = start, _MOST_ENTRIES, _MOST_GAPS
    while at + _CONTAINER.size <= end:
        magic, _, header_size, content_size = source.unpack(_CONTAINER, at)
        if magic != _MAGIC or header_size < _CONTAINER.size:
            gaps -= 1
            if gaps < 0:
                yield None
                return
            at = _next_container(source, at + 1, end)
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
            kind, _, entry_size, code_size, architecture, flags = source.unpack(_ENTRY, inner)
            if entry_size < _ENTRY.size or inner + entry_size + code_size > stop:
                yield None
                break
            yield kind, _name(kind, architecture, flags)
            inner += entry_size + code_size
        if left < 0:
            return
        at = (stop + 7) & ~7


def _name(kind: int, architecture: int, flags: int) -> str:
    prefix = {_PTX: "compute", _INTERMEDIATE: "lto"}.get(kind, "sm")
    suffix = "a" if flags & _ARCHITECTURE_SPECIFIC else "f" if flags & _FAMILY_SPECIFIC else ""
    return f"{prefix}_{architecture}{suffix}"


def _next_container(source: ByteSource, start: int, end: int) -> int:
    """Where the next container begins after padding or unknown bytes; ``end`` when there is none."""
    step = 1 << 20
    while start < end:
        block = source.read_up_to(start, min(step, end - start))
        found = block.find(_MAGIC_BYTES)
        if found >= 0:
            return start + found
        if len(block) < len(_MAGIC_BYTES) or start + len(block) >= end:
            return end
        start += len(block) - len(_MAGIC_BYTES) + 1
    return end
