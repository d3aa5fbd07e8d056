"""Reading ELF files: what a library is called, needs and was built with.

System V ABI, generic part (gABI 4.1) chapters 4 and 5; symbol versions: Linux Standard Base 5.0, "Symbol
Versioning"; notes: gABI chapter 5, "Note Section". Everything is found through the program headers, as the
loader does, so that files without section headers are read too; sections are only asked for by name.
Every table has a bound and every walk goes forward, so that a hostile file costs no more than its size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from stackbuild.scan.byte_source import ByteSource, damaged
from stackbuild.scan.elf_notes import CompatNote, compat_note, notes

MAGIC = b"\x7fELF"
_MOST_ENTRIES = 1 << 16
_MOST_NAMES = 1 << 12  # libraries needed, or symbol versions; the largest real ones have some hundreds
_MOST_SEGMENTS = 1 << 12

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_NOTE = 1, 2, 3, 4
_SHT_NOTE, _SHT_NOBITS = 7, 8
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29
_DT_FLAGS_1, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFB, 0x6FFFFFFE, 0x6FFFFFFF
_DF_1_NODEFLIB = 0x800
_NT_GNU_BUILD_ID = 3
_COMPAT_SECTION = ".note.cuda.fwd_compatibility"
# e_machine as the wheels' and dpkg's names; gABI registry.
_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 190: "cuda", 243: "riscv64", 21: "ppc64"}


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its name, and where its bytes lie in the file."""

    name: str
    kind: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ElfFile:
    """One ELF file.

    Attributes:
        machine: ``x86_64``, ``aarch64``, … or ``machine-N``.
        bits: 32 or 64.
        kind: ``library`` (shared or position-independent), ``program``, ``object`` or ``other``.
        soname: Its DT_SONAME; empty without one.
        needed: Its DT_NEEDED names, in order.
        rpath: DT_RPATH folders as written, ``$ORIGIN`` among them.
        runpath: DT_RUNPATH folders; where there are any, the loader ignores rpath.
        nodeflib: True when the default folders are not searched (DF_1_NODEFLIB).
        build_id: Hex digits; empty without one.
        interpreter: The loader a program asks for.
        versions: Symbol versions needed, as (library, versions).
        compat: The note of a cuda-compat library.
        static: True without a dynamic section.
    """

    machine: str
    bits: int
    kind: str
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    nodeflib: bool = False
    build_id: str = ""
    interpreter: str = ""
    versions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    compat: CompatNote | None = None
    static: bool = False

    def needs_version(self, prefix: str) -> str:
        """The highest symbol version of one family it needs, such as ``GLIBC_`` → ``2.34``; empty for none."""
        found = {
            version.removeprefix(prefix)
            for _, versions in self.versions
            for version in versions
            if version.startswith(prefix) and version[len(prefix) : len(prefix) + 1].isdigit()
        }
        return max(found, key=_numbers, default="")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in text.split("."))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Structures of one class and byte order."""

    header: struct.Struct
    segment: struct.Struct
    section: struct.Struct
    dynamic: struct.Struct
    order: str
    bits: int

    @classmethod
    def of(cls, bits: int, order: str) -> _Layout:
        if bits == 64:
            formats = ("HHIQQQIHHHHHH", "IIQQQQQQ", "IIQQQQIIQQ", "qQ")
        else:
            formats = ("HHIIIIIHHHHHH", "IIIIIIII", "IIIIIIIIII", "iI")
        header, segment, section, dynamic = (struct.Struct(order + text) for text in formats)
        return cls(header, segment, section, dynamic, order, bits)


_LAYOUTS = {(bits, order): _Layout.of(bits, order) for bits in (32, 64) for order in "<>"}


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


class ElfReader:
    """Reads one ELF file by ranges.

    Args:
        source: The file.

    Raises:
        ScanError: ``file-damaged`` when the header itself is not ELF's.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        ident = source.read(0, 16)
        bits, order = {1: 32, 2: 64}.get(ident[4]), {1: "<", 2: ">"}.get(ident[5])
        if ident[:4] != MAGIC or bits is None or order is None:
            raise damaged("its header is not an ELF header")
        self._layout = _LAYOUTS[bits, order]
        fields = source.unpack(self._layout.header, 16)
        self._type, self._machine, _, _, self._phoff, self._shoff, self.flags = fields[:7]
        _, self._phentsize, self._phnum, self._shentsize, self._shnum, self._shstrndx = fields[7:]

    def file(self) -> ElfFile:
        """Everything the loader would read.

        Raises:
            ScanError: ``file-damaged``.
        """
        segments = self._segments()
        dynamic = self._dynamic(segments)
        strings = self._address(segments, dynamic.get(_DT_STRTAB, [0])[0]) if dynamic else 0
        texts = {
            tag: tuple(self._source.text(strings + offset) for offset in dynamic.get(tag, ())[:_MOST_NAMES])
            for tag in (_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH)
        }
        build_id, compat = self._notes(segments)
        return ElfFile(
            machine=_MACHINES.get(self._machine, f"machine-{self._machine}"),
            bits=self._layout.bits,
            kind={1: "object", 2: "program", 3: "library"}.get(self._type, "other"),
            soname=(texts[_DT_SONAME] or ("",))[0],
            needed=texts[_DT_NEEDED],
            rpath=_folders(texts[_DT_RPATH]),
            runpath=_folders(texts[_DT_RUNPATH]),
            nodeflib=bool(dynamic.get(_DT_FLAGS_1, [0])[0] & _DF_1_NODEFLIB),
            build_id=build_id,
            interpreter=self._interpreter(segments),
            versions=self._versions(segments, dynamic, strings),
            compat=compat,
            static=not dynamic,
        )

    def sections(self) -> Iterator[Section]:
        """The sections, in file order of their headers; none where the headers were stripped.

        Raises:
            ScanError: ``file-damaged``.
        """
        layout, count, names_index = self._layout.section, self._shnum, self._shstrndx
        if not self._shoff:
            return
        if self._shentsize != layout.size:
            raise damaged(f"its section headers are {self._shentsize} bytes long")
        first = self._source.unpack(layout, self._shoff)
        count = count or first[5]  # gABI: with 65,280 sections or more the counts are in the first header
        names_index = first[6] if names_index == 0xFFFF else names_index
        if count > _MOST_ENTRIES or names_index >= max(count, 1):
            raise damaged(f"it claims {count} sections")
        rows = [*layout.iter_unpack(self._source.read(self._shoff, count * layout.size))]
        if not rows:
            return
        names_at = rows[names_index][4]
        for row in rows[1:]:
            yield Section(self._source.text(names_at + row[0]), row[1], row[4], row[5])

    def section_bytes_in_file(self, section: Section) -> bool:
        """False for sections such as ``.bss`` that take no room in the file."""
        return section.kind != _SHT_NOBITS

    def _segments(self) -> list[_Segment]:
        layout = self._layout.segment
        if not self._phnum:
            return []
        if self._phentsize != layout.size or self._phnum > _MOST_SEGMENTS:
            raise damaged(f"it claims {self._phnum} program headers of {self._phentsize} bytes")
        rows = layout.iter_unpack(self._source.read(self._phoff, self._phnum * layout.size))
        if self._layout.bits == 64:
            return [_Segment(row[0], row[2], row[3], row[5]) for row in rows]
        return [_Segment(row[0], row[1], row[2], row[4]) for row in rows]

    def _address(self, segments: list[_Segment], address: int) -> int:
        """The file offset of a virtual address."""
        for segment in segments:
            if segment.kind == _PT_LOAD and 0 <= address - segment.address < segment.size:
                return address - segment.address + segment.offset
        raise damaged(f"no segment holds address {address:#x}")

    def _dynamic(self, segments: list[_Segment]) -> dict[int, list[int]]:
        segment = next((item for item in segments if item.kind == _PT_DYNAMIC), None)
        if segment is None:
            return {}
        layout = self._layout.dynamic
        count = min(segment.size // layout.size, _MOST_ENTRIES)
        found: dict[int, list[int]] = {}
        for tag, value in layout.iter_unpack(self._source.read(segment.offset, count * layout.size)):
            if tag == 0:
                break
            found.setdefault(tag, []).append(value)
        return found

    def _interpreter(self, segments: list[_Segment]) -> str:
        segment = next((item for item in segments if item.kind == _PT_INTERP), None)
        return self._source.text(segment.offset) if segment else ""

    def _versions(
        self, segments: list[_Segment], dynamic: dict[int, list[int]], strings: int
    ) -> tuple[tuple[str, tuple[str, ...]], ...]:
        if _DT_VERNEED not in dynamic:
            return ()
        need, auxiliary = (
            struct.Struct(self._layout.order + "HHIII"),
            struct.Struct(self._layout.order + "IHHII"),
        )
        at = self._address(segments, dynamic[_DT_VERNEED][0])
        found: list[tuple[str, tuple[str, ...]]] = []
        steps = _MOST_NAMES
        for _ in range(min(dynamic.get(_DT_VERNEEDNUM, [0])[0], _MOST_NAMES)):
            _, count, file, first, following = self._source.unpack(need, at)
            names: list[str] = []
            inner = at + first
            for _ in range(count):
                steps -= 1
                if steps < 0:
                    raise damaged("it claims too many symbol versions")
                _, _, _, name, step = self._source.unpack(auxiliary, inner)
                names.append(self._source.text(strings + name))
                if not step:
                    break
                inner += step
            found.append((self._source.text(strings + file), tuple(names)))
            if not following:
                break
            at += following
        return tuple(found)

    def _notes(self, segments: list[_Segment]) -> tuple[str, CompatNote | None]:
        build_id, compat = "", None
        for segment in segments:
            if segment.kind != _PT_NOTE:
                continue
            for name, kind, description in notes(
                self._source, segment.offset, segment.size, self._layout.order
            ):
                if name == b"GNU" and kind == _NT_GNU_BUILD_ID and not build_id:
                    build_id = description.hex()
        # NVIDIA's note may lie outside the note segments; the toolkit finds it by its section's name.
        if self._may_be_compat(segments):
            compat = self._compat_note()
        return build_id, compat

    def _may_be_compat(self, segments: list[_Segment]) -> bool:
        dynamic = self._dynamic(segments)
        if _DT_SONAME not in dynamic or _DT_STRTAB not in dynamic:
            return False
        strings = self._address(segments, dynamic[_DT_STRTAB][0])
        return self._source.text(strings + dynamic[_DT_SONAME][0]).startswith("libcuda.so")

    def _compat_note(self) -> CompatNote | None:
        for section in self.sections():
            if section.kind == _SHT_NOTE and section.name == _COMPAT_SECTION:
                for name, _, description in notes(
                    self._source, section.offset, section.size, self._layout.order
                ):
                    if name == b"NVIDIA Corporation":
                        return compat_note(description)
        return None


def _folders(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder for text in texts for folder in text.split(":") if folder)
