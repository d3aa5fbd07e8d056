"""Makes small ELF libraries: a header, one loadable segment and a dynamic section, nothing to run."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_HEADER, _SEGMENT, _SECTION, _DYNAMIC = "<HHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ", "<qQ"
_MACHINES = {"x86_64": 62, "aarch64": 183}


def make_elf(
    *,
    soname: str = "",
    needed: Sequence[str] = (),
    runpath: str = "",
    rpath: str = "",
    versions: Mapping[str, Sequence[str]] | None = None,
    fatbin: bytes = b"",
    data: bytes = b"",
    machine: str = "x86_64",
) -> bytes:
    """A 64-bit little-endian shared library with these entries.

    Args:
        soname: Its DT_SONAME.
        needed: Its DT_NEEDED names.
        runpath: Its DT_RUNPATH.
        rpath: Its DT_RPATH.
        versions: Library → symbol versions it needs of it.
        fatbin: Content of a section ``.nv_fatbin``.
        data: Content of a section ``.ldata`` beside that one.
        machine: ``x86_64`` or ``aarch64``.
    """
    strings = bytearray(b"\0")

    def text(value: str) -> int:
        at = len(strings)
        strings.extend(value.encode() + b"\0")
        return at

    entries = [(1, text(name)) for name in needed]
    entries += [(tag, text(value)) for tag, value in ((14, soname), (15, rpath), (29, runpath)) if value]
    needs = [(text(name), [text(version) for version in listed]) for name, listed in (versions or {}).items()]
    start = 64 + 2 * 56
    table = bytearray()
    for number, (name, listed) in enumerate(needs):
        size = 16 + 16 * len(listed)
        table += struct.pack("<HHIII", 1, len(listed), name, 16, size if number + 1 < len(needs) else 0)
        for inner, version in enumerate(listed):
            table += struct.pack("<IHHII", 0, 0, 2, version, 16 if inner + 1 < len(listed) else 0)
    strings_at = start + len(table)
    if needs:
        entries += [(0x6FFFFFFE, start), (0x6FFFFFFF, len(needs))]
    entries += [(5, strings_at), (0, 0)]
    dynamic_at = (strings_at + len(strings) + 7) & ~7
    dynamic = b"".join(struct.pack(_DYNAMIC, *entry) for entry in entries)
    body = bytes(table) + bytes(strings)
    body += bytes(dynamic_at - start - len(body)) + dynamic
    end = start + len(body)
    fatbin_at = (end + 7) & ~7
    names = b"\0.nv_fatbin\0.shstrtab\0.ldata\0"
    data_at = fatbin_at + len(fatbin)
    names_at = data_at + len(data)
    sections_at = (names_at + len(names) + 7) & ~7
    sections = struct.pack(_SECTION, *([0] * 10))
    sections += struct.pack(_SECTION, 1, 1, 2, 0, fatbin_at, len(fatbin), 0, 0, 8, 0)
    sections += struct.pack(_SECTION, 12, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    sections += struct.pack(_SECTION, 22, 1, 3, 0, data_at, len(data), 0, 0, 8, 0)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack(
        _HEADER, 3, _MACHINES[machine], 1, 0, 64, sections_at if fatbin else 0, 0, 64, 56, 2, 64,
        4 if fatbin else 0, 2 if fatbin else 0,
    )  # fmt: skip
    segments = struct.pack(_SEGMENT, 1, 5, 0, 0, 0, end, end, 4096)
    segments += struct.pack(_SEGMENT, 2, 6, dynamic_at, dynamic_at, 0, len(dynamic), len(dynamic), 8)
    whole = header + segments + body
    if fatbin:
        whole += bytes(fatbin_at - end) + fatbin + data + names
        whole += bytes(sections_at - len(whole)) + sections
    return whole


def make_fatbin(
    *,
    cubins: Sequence[str] = (),
    ptx: Sequence[str] = (),
    code: bytes = bytes(8),
    packed: int = 0,
    whole: int = 0,
) -> bytes:
    """A fat binary with an entry for each architecture (``sm_90a``, ``compute_90``).

    Args:
        cubins: Architectures of its cubins.
        ptx: Architectures of its PTX.
        code: What each entry holds; by default nothing that can be read.
        packed: The flag of its compression.
        whole: The size it is decompressed to.
    """
    stored = code + bytes(-len(code) % 8)
    content = b""
    for kind, names in ((2, cubins), (1, ptx)):
        for name in names:
            number = name.split("_")[1]
            flags = (
                packed
                | 0x11
                | (0x100000 if number.endswith("a") else 0x200000 if number.endswith("f") else 0)
            )
            architecture = int(number.rstrip("af"))
            sizes = (len(stored), len(code) if packed else 0)
            content += struct.pack("<HHIQI", kind, 0x101, 64, *sizes)
            content += struct.pack("<IHHIIIQQQ", 0, 8, 1, architecture, 0, 0, flags, 0, whole) + stored
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content
