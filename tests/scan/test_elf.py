"""ELF files as a linker wrote them, made by hand, cut at every length and overwritten at random."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from stackbuild.errors import ScanError
from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.elf import ElfFile, ElfReader
from stackbuild.scan.fatbin import read_gpu_code
from tests.support.elf import make_elf, make_fatbin

FIXTURES = Path(__file__).parent / "fixtures"


def source(data: bytes) -> ByteSource:
    return ByteSource(io.BytesIO(data))


def elf_of(here: ByteSource) -> ElfFile:
    return ElfReader(here).file()


def test_a_linked_library_is_read():
    found = elf_of(source((FIXTURES / "several_architectures.so").read_bytes()))
    assert (found.machine, found.bits, found.kind) == ("x86_64", 64, "library")
    assert found.soname == "libscale.so.1"
    assert found.needed == ("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6")
    assert found.runpath == ("$ORIGIN/../lib",)
    assert found.rpath == ()
    assert len(found.build_id) == 40
    assert ("libgcc_s.so.1", ("GCC_3.0",)) in found.versions
    assert found.needs_version("GLIBC_") == "2.2.5"


def test_versions_compare_as_numbers():
    made = make_elf(
        needed=["libc.so.6"], versions={"libc.so.6": ["GLIBC_2.4", "GLIBC_2.34", "GLIBC_PRIVATE"]}
    )
    assert elf_of(source(made)).needs_version("GLIBC_") == "2.34"


def test_rpath_and_runpath_are_kept_apart():
    made = make_elf(soname="liba.so", rpath="/opt/a:/opt/b", runpath="$ORIGIN")
    found = elf_of(source(made))
    assert (found.rpath, found.runpath) == (("/opt/a", "/opt/b"), ("$ORIGIN",))


def test_the_note_of_a_compat_library_is_read():
    found = elf_of(source((FIXTURES / "compat_libcuda.so").read_bytes()))
    assert found.compat is not None
    assert found.compat.cuda == "13.1"
    assert found.compat.drivers == (535, 550, 570, 580)


def test_an_object_without_program_headers_is_static():
    found = elf_of(source((FIXTURES / "relocatable.o").read_bytes()))
    assert (found.kind, found.static, found.needed) == ("object", True, ())


def read_all(data: bytes) -> None:
    """Everything that is read of an ELF file, or our own error."""
    here = source(data)
    try:
        reader = ElfReader(here)
        reader.file()
        read_gpu_code(reader, here)
    except ScanError as error:
        assert error.code == "file-damaged"  # noqa: PT017 - the only outcome allowed beside success


@pytest.mark.parametrize("name", ["relocatable.o", "compat_libcuda.so"])
def test_cut_at_every_length(name: str):
    data = (FIXTURES / name).read_bytes()
    for length in range(len(data)):
        read_all(data[:length])


def test_made_library_cut_at_every_length():
    data = make_elf(
        soname="liba.so.1",
        needed=["libb.so", "libc.so.6"],
        versions={"libc.so.6": ["GLIBC_2.34"]},
        fatbin=make_fatbin(cubins=["sm_80", "sm_90a"], ptx=["compute_90"]),
    )
    for length in range(len(data)):
        read_all(data[:length])


@pytest.mark.parametrize("name", ["several_architectures.so", "relocatable.o", "compat_libcuda.so"])
def test_overwritten_at_random(name: str):
    data = (FIXTURES / name).read_bytes()
    draw = random.Random(20240601)
    # Headers and tables hold what steers the reader: they are hit most often.
    places = [*range(64), *range(64, min(len(data), 2048)), *range(len(data) - 2600, len(data))]
    for _ in range(700):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 8)):
            changed[draw.choice(places)] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        read_all(bytes(changed))


def test_a_claim_of_many_names_costs_no_more_than_its_bound():
    made = bytearray(make_elf(soname="a" * 4000, needed=["b"] * 20_000))
    found = elf_of(source(bytes(made)))
    assert len(found.needed) <= 4096


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"MZ" + bytes(100)])
def test_what_is_not_elf_is_said(data: bytes):
    with pytest.raises(ScanError, match="damaged or cut off"):
        elf_of(source(data))
