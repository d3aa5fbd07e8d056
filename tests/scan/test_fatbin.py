"""GPU code in libraries, against what cuobjdump lists of the same files."""

from __future__ import annotations

import io
import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from stackbuild.errors import ScanError
from stackbuild.facts.tables import Facts
from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.elf import ElfReader
from stackbuild.scan.fatbin import GpuCode, read_fatbin, read_gpu_code
from tests.support.cuda_tools import cuobjdump, onnxruntime_provider, torch_cuda_library
from tests.support.elf import make_elf, make_fatbin
from tests.support.layer_tars import zstd

FIXTURES = Path(__file__).parent / "fixtures"
# What `cuobjdump -lelf -lptx` (13.4.92) lists; it names a family's cubin without its suffix.
LISTED = json.loads((FIXTURES / "cuobjdump.json").read_text())


def code_of(path: Path) -> GpuCode:
    with path.open("rb") as stream:
        source = ByteSource(stream)
        if path.suffix == ".fatbin":
            return read_fatbin(source)
        code = read_gpu_code(ElfReader(source), source)
        assert code is not None
        return code


def as_cuobjdump(code: GpuCode) -> dict[str, dict[str, int]]:
    cubins: dict[str, int] = {}
    for name, count in code.cubins:
        cubins[name.rstrip("f")] = cubins.get(name.rstrip("f"), 0) + count
    return {"cubins": cubins, "ptx": {name.replace("compute", "sm"): count for name, count in code.ptx}}


@pytest.mark.parametrize("name", sorted(LISTED))
def test_the_architectures_are_those_that_cuobjdump_lists(name: str):
    assert as_cuobjdump(code_of(FIXTURES / name)) == LISTED[name]


def test_suffixes_and_intermediate_code_are_told_apart():
    assert code_of(FIXTURES / "several_architectures.so").sm == ("sm_75", "sm_80", "sm_90a", "sm_120f")
    assert code_of(FIXTURES / "several_architectures.so").compute == ("compute_90", "compute_120f")
    assert code_of(FIXTURES / "intermediate.fatbin").intermediate == (("lto_80", 1),)


def test_made_fat_binaries_are_read_as_real_ones():
    made = make_elf(soname="liba.so", fatbin=make_fatbin(cubins=["sm_120", "sm_80"], ptx=["compute_90"]) * 3)
    source = ByteSource(io.BytesIO(made))
    assert read_gpu_code(ElfReader(source), source) == GpuCode(
        cubins=(("sm_80", 3), ("sm_120", 3)), ptx=(("compute_90", 3),)
    )


def test_a_library_without_gpu_code_has_none():
    source = ByteSource(io.BytesIO(make_elf(soname="liba.so")))
    assert read_gpu_code(ElfReader(source), source) is None


def test_cut_at_every_length_counts_only_what_is_there():
    data = (FIXTURES / "intermediate.fatbin").read_bytes()
    whole = read_fatbin(ByteSource(io.BytesIO(data)))
    for length in range(16, len(data)):
        code = read_fatbin(ByteSource(io.BytesIO(data[:length])))
        assert code.damaged
        assert len(code.cubins) <= len(whole.cubins)


def test_overwritten_at_random():
    data = (FIXTURES / "intermediate.fatbin").read_bytes()
    draw = random.Random(20240601)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 6)):
            changed[draw.randrange(200)] = draw.choice((0, 0x7F, 0xFF, draw.randrange(256)))
        try:
            read_fatbin(ByteSource(io.BytesIO(bytes(changed))))
        except ScanError as error:
            assert error.code == "file-damaged"  # noqa: PT017


def test_gaps_between_containers_are_searched_a_bounded_number_of_times():
    gap = make_fatbin() + b"junkjunk"
    code = read_fatbin(ByteSource(io.BytesIO(gap * 70_000 + make_fatbin(cubins=["sm_80"]))))
    assert code.damaged


def test_padding_between_containers_is_passed_over():
    data = make_fatbin(cubins=["sm_80"]) + bytes(4096) + make_fatbin(cubins=["sm_90"])
    assert read_fatbin(ByteSource(io.BytesIO(data))).sm == ("sm_80", "sm_90")


# What nvlink of CUDA 13 leaves behind: sections, and none with code.
EMPTY_CUBIN = (
    b"\x7fELF\2\1\1\x41" + bytes(56) + b"\0.shstrtab\0.strtab\0.symtab\0.note.nv.tkinfo\0" + bytes(1500)
)
CUBIN = EMPTY_CUBIN + b".text._Z6kernelPf\0"
EMPTY_PTX = b"//\n.version 9.0\n.target sm_75\n.address_size 64\n\0"
PTX = EMPTY_PTX[:-1] + b".visible .entry _Z6kernelPf()\n{\n}\n\0"


def lz4(data: bytes) -> bytes:
    """An LZ4 block of literals, then a run of the last byte."""
    run = len(data) - len(data.rstrip(data[-1:]))
    literals, rest = data[: len(data) - run + 1], run - 1
    head = b"\xff" + _more(len(literals) - 15) + literals
    return head + b"\1\0" + _more(rest - 4 - 15)


def _more(length: int) -> bytes:
    return b"\xff" * (length // 255) + bytes([length % 255])


def plain(data: bytes) -> tuple[bytes, int]:
    return data, 0


def packed_by_lz4(data: bytes) -> tuple[bytes, int]:
    return lz4(data + bytes(700)), 0x2000


def packed_by_zstd(data: bytes) -> tuple[bytes, int]:
    return zstd.compress(data + bytes(700)), 0x8000


def library_code(fatbin: bytes, data: bytes = b"") -> GpuCode:
    source = ByteSource(io.BytesIO(make_elf(soname="liba.so", fatbin=fatbin, data=data)))
    code = read_gpu_code(ElfReader(source), source)
    assert code is not None
    return code


@pytest.mark.parametrize("pack", [plain, packed_by_lz4, packed_by_zstd])
@pytest.mark.parametrize(
    ("code", "empty"), [(EMPTY_CUBIN, True), (CUBIN, False), (EMPTY_PTX, True), (PTX, False)]
)
def test_what_a_compiler_leaves_behind_is_no_code_that_must_run(code: bytes, empty: bool, pack):
    stored, flag = pack(code)
    made = make_fatbin(cubins=["sm_75"], code=stored, packed=flag, whole=len(code) + 700 if flag else 0)
    found = library_code(made)
    assert found.empty is empty
    assert found.cubins == (("sm_75", 1),)


def test_kernels_for_one_architecture_make_all_of_them_count():
    """cuDNN's libcudnn_ext has kernels for sm_100 and newer only, and is meant to be loaded everywhere."""
    made = make_fatbin(cubins=["sm_80", "sm_90"], code=EMPTY_CUBIN) + make_fatbin(
        cubins=["sm_100"], code=CUBIN
    )
    assert library_code(made).empty is False


def test_code_that_a_library_loads_itself_is_found_in_its_data():
    """As cuFFT has it: nothing in the section made for it, thousands of containers between pointers."""
    kernels = make_fatbin(cubins=["sm_80", "sm_90"], ptx=["compute_90"], code=CUBIN)
    data = b"".join(bytes([number]) * 24 + kernels for number in range(40))
    found = library_code(make_fatbin(cubins=["sm_75"], code=EMPTY_CUBIN), data)
    assert found == GpuCode(
        cubins=(("sm_75", 1), ("sm_80", 40), ("sm_90", 40)), ptx=(("compute_90", 40),), empty=False
    )


def test_data_is_not_searched_where_the_section_has_kernels():
    made = library_code(make_fatbin(cubins=["sm_75"], code=CUBIN), make_fatbin(cubins=["sm_90"], code=CUBIN))
    assert made.sm == ("sm_75",)


@pytest.mark.parametrize("flag", [0, 0x2000, 0x8000])
def test_small_code_that_is_damaged_counts_as_code(flag: int):
    draw = random.Random(75)
    for _ in range(400):
        code = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 60)))
        assert not library_code(make_fatbin(cubins=["sm_75"], code=code, packed=flag, whole=2000)).empty


def listed_cubins(library: Path) -> dict[str, int]:
    output = subprocess.run(
        [cuobjdump(), "-lelf", library], capture_output=True, text=True, check=True
    ).stdout
    return dict(Counter(re.findall(r"\.(sm_\w+)\.cubin", output)))


@pytest.mark.slow
def test_onnxruntime_gpu_equals_cuobjdump_and_the_facts():
    library = onnxruntime_provider("1.31.1")
    code = code_of(library)
    assert as_cuobjdump(code)["cubins"] == listed_cubins(library)
    row = Facts().onnxruntime_release("1.31.1")
    assert row is not None
    assert set(code.sm) == set(row.sm)
    assert code.ptx == ()


@pytest.mark.slow
def test_torch_equals_cuobjdump_and_has_what_the_facts_say():
    library = torch_cuda_library("2.14.1")
    code = code_of(library)
    assert as_cuobjdump(code)["cubins"] == listed_cubins(library)
    row = Facts().torch_variant("2.14.1", "cu130")
    assert row is not None
    assert set(row.sm) <= set(code.sm)
    assert code.ptx == ()
