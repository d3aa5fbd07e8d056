"""An ELF file and its GPU code as a row of JSON values, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stackbuild.scan.elf import ElfFile
from stackbuild.scan.elf_notes import CompatNote
from stackbuild.scan.fatbin import GpuCode


@dataclass(frozen=True, slots=True)
class Library:
    """One ELF file of an image: where it lies, what the loader reads of it, and its GPU code."""

    path: str
    elf: ElfFile
    gpu: GpuCode | None = None

    @property
    def name(self) -> str:
        """Its file name."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def kernels(self) -> GpuCode | None:
        """Its GPU code; None without any, and where there is none that could run."""
        return None if self.gpu is None or self.gpu.empty else self.gpu


def elf_row(file: ElfFile, code: GpuCode | None) -> list[Any]:
    """What a layer's record keeps of an ELF file."""
    compat = [file.compat.cuda, list(file.compat.drivers)] if file.compat else None
    gpu = [code.cubins, code.ptx, code.intermediate, code.damaged, code.empty] if code else None
    return [
        *(file.machine, file.bits, file.kind, file.soname, file.needed, file.rpath, file.runpath),
        *(file.nodeflib, file.build_id, file.interpreter, file.versions, file.static, compat, gpu),
    ]


def library_of_row(path: str, row: Sequence[Any]) -> Library:
    """The ELF file that :func:`elf_row` made a row of."""
    machine, bits, kind, soname, needed, rpath, runpath, nodeflib, build_id = row[:9]
    interpreter, versions, static, compat, gpu = row[9:]
    file = ElfFile(
        machine=machine,
        bits=bits,
        kind=kind,
        soname=soname,
        needed=tuple(needed),
        rpath=tuple(rpath),
        runpath=tuple(runpath),
        nodeflib=nodeflib,
        build_id=build_id,
        interpreter=interpreter,
        versions=tuple((name, tuple(listed)) for name, listed in versions),
        compat=CompatNote(compat[0], tuple(compat[1])) if compat else None,
        static=static,
    )
    return Library(path, file, _code(gpu) if gpu else None)


def _code(row: Sequence[Any]) -> GpuCode:
    cubins, ptx, intermediate = (tuple((name, count) for name, count in part) for part in row[:3])
    return GpuCode(cubins, ptx, intermediate, *row[3:])
