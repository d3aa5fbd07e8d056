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
    code = read_fatbin(ByteSource(io.BytesIO(gap * 20_000 + make_fatbin(cubins=["sm_80"]))))
    assert code.damaged


def test_padding_between_containers_is_passed_over():
    data = make_fatbin(cubins=["sm_80"]) + bytes(4096) + make_fatbin(cubins=["sm_90"])
    assert read_fatbin(ByteSource(io.BytesIO(data))).sm == ("sm_80", "sm_90")


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
