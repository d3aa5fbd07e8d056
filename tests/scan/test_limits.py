"""Layers made to fill memory or to take forever, at their full size; each is made while it is read."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stackbuild.errors import ScanError
from stackbuild.scan import examine, layer_scanner
from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.elf import ElfReader
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer import ScannedLayer
from stackbuild.scan.layer_scanner import scan_tar
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.scan.sources.interface import ImageDescription
from tests.support.elf import make_elf
from tests.support.layer_tars import SILENT, Compression, digest, image_config, layer_tar, zstd
from tests.support.measured import measured

MB = 1 << 20


class Stream(io.RawIOBase):
    """Blocks as they are made, as a stream."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        super().__init__()
        self._blocks, self._rest = iter(blocks), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def header(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, linkname: str = "") -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = size, kind, linkname
    return member.tobuf(tarfile.GNU_FORMAT)


def tar_of(members: Iterable[bytes]) -> io.BufferedReader:
    def blocks() -> Iterator[bytes]:
        yield from members
        yield bytes(1024)

    return io.BufferedReader(Stream(blocks()), MB)


# dpkg's status


def status_of(entry: bytes, size: int) -> Iterator[bytes]:
    """A layer's tar with a status file of repeated paragraphs."""
    count = size // len(entry)
    size = count * len(entry)
    yield header("var/lib/dpkg/status", size)
    for _ in range(count // 1000):
        yield entry * 1000
    yield entry * (count % 1000) + bytes(-size % 512)


PARAGRAPH = (
    b"Package: libexample-package\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.2.3-4\n"
    b"Depends: libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 11), zlib1g (>= 1:1.2.3)\n"
    b"Description: a package as they are\n"
    + b" with a text that goes on and on over many lines\n" * 16
    + b"\n"
)


def scanned_status(entry: bytes, size: int) -> int:
    layer = scan_tar(tar_of(status_of(entry, size)))
    return len(layer.facts["dpkg"]["var/lib/dpkg/status"])


def test_a_status_file_is_read_in_memory_that_its_packages_need():
    """A hundred megabytes in two seconds; see the slow test for that size."""
    run = measured(scanned_status, PARAGRAPH, 10 * MB)
    assert run.value == 10 * MB // len(PARAGRAPH)
    assert run.peak < 40 * MB


@pytest.mark.slow
def test_a_status_file_of_a_hundred_megabytes():
    small, large = (measured(scanned_status, PARAGRAPH, size * MB) for size in (25, 100))
    assert large.value == 100 * MB // len(PARAGRAPH)
    assert large.peak < 200 * MB
    assert large.seconds < 30
    assert large.seconds < 8 * small.seconds, (
        "four times the file must not take more than about four times as long"
    )


def test_a_status_file_of_more_packages_than_there_are_is_refused():
    run = measured(scanned_status, b"Package: a\nVersion: 1\n\n", 20 * MB)
    assert run.value == "layer-too-large"
    assert run.peak < 150 * MB


def test_records_of_more_files_than_any_layer_has_are_refused(monkeypatch: pytest.MonkeyPatch):
    assert examine._MOST_ROWS == 2_000_000
    monkeypatch.setattr(examine, "_MOST_ROWS", 20_000)
    rows = b"a,,\n" * 4_000
    site = "opt/venv/lib/python3.12/site-packages"

    def members() -> Iterator[bytes]:
        for number in range(8):
            yield header(f"{site}/p{number}-1.dist-info/RECORD", len(rows))
            yield rows + bytes(-len(rows) % 512)

    with pytest.raises(ScanError, match="more than 20,000 rows") as caught:
        scan_tar(tar_of(members()))
    assert caught.value.code == "layer-too-large"


# Many entries


def many_files(count: int) -> Iterator[bytes]:
    block = bytearray(header("opt/data/000/a-file-as-they-are-named-000000000.bin"))
    for start in range(0, count, 256):
        made = []
        for number in range(start, min(start + 256, count)):
            block[:52] = b"opt/data/%03d/a-file-as-they-are-named-%09d.bin\0" % (
                number // 1000 % 1000,
                number,
            )
            block[148:156] = b"        "
            block[148:156] = b"%06o\0 " % sum(block)
            made.append(bytes(block))
        yield b"".join(made)


def put_together(count: int) -> int:
    """As a scan does: the layer, its record for the store and back, the image's files."""
    layer = scan_tar(tar_of(many_files(count)))
    record = layer.to_record()
    del layer
    kept = ScannedLayer.from_record(record)
    del record
    return len(ImageFiles(ImageDescription("image", {}, ("sha256:0",)), [kept]))


def test_thirty_thousand_files():
    run = measured(put_together, 30_000)
    assert run.value == 30_000 + 30 + 2
    assert run.peak < 40 * MB


@pytest.mark.slow
def test_a_million_files():
    small, large = measured(put_together, 100_000), measured(put_together, 1_000_000)
    assert large.value == 1_000_000 + 1_000 + 2
    assert large.peak < 800 * MB
    assert large.seconds < 120
    assert large.seconds < 20 * small.seconds, (
        "ten times the files must not take much more than ten times as long"
    )


@pytest.mark.parametrize("name", ["../out", "opt/.wh.gone", "opt/file"])
def test_what_is_left_out_or_deletes_counts_too(name: str):
    members = (header(f"{name}{number}") for number in range(200))
    with pytest.raises(ScanError, match="more than 100 files"):
        scan_tar(tar_of(members), most_entries=100)


def test_refusals_are_counted_and_only_the_first_are_kept():
    layer = scan_tar(tar_of(header(f"../{number:06}") for number in range(5_000)))
    assert len(layer.problems) == 101
    assert layer.problems[0].startswith("'../000000'")
    assert layer.problems[-1] == "and 4900 more"


def test_names_that_no_process_can_open_are_left_out_and_all_together_have_a_limit(
    monkeypatch: pytest.MonkeyPatch,
):
    layer = scan_tar(
        tar_of([header("a" * 5000), header("l", kind=tarfile.SYMTYPE, linkname="b" * 5000), header("ok")])
    )
    assert set(layer.entries) == {"ok"}
    assert len(layer.problems) == 2
    assert layer_scanner._MOST_NAME_BYTES == 250_000_000
    monkeypatch.setattr(layer_scanner, "_MOST_NAME_BYTES", 8_000_000)
    with pytest.raises(ScanError, match=r"names of more than 8\.0 MB"):
        scan_tar(tar_of(header("x" * (MB - 100) + str(number)) for number in range(20)))


def test_hard_links_to_hard_links_take_linear_time():
    count = 10_000

    def members() -> Iterator[bytes]:
        yield header("f000000")
        for number in range(count, 0, -1):
            yield header(f"f{number:06}", kind=tarfile.LNKTYPE, linkname=f"f{number - 1:06}")

    layer = scan_tar(tar_of(members()))
    assert layer.entries["f000000"].kind == "file"
    assert {entry.linkname for path, entry in layer.entries.items() if path != "f000000"} == {"f000000"}
    circle = scan_tar(
        tar_of(header(f"c{n}", kind=tarfile.LNKTYPE, linkname=f"c{(n + 1) % 5000}") for n in range(5000))
    )
    assert len(circle.entries) == 5000


def test_extended_headers_without_a_member_end():
    value = b"SCHILY.xattr.user.a=" + b"x" * 900
    record = b"%d %s\n" % (len(value) + 5, value)
    block = header("x", len(record), tarfile.XHDTYPE) + record + bytes(-len(record) % 512)
    with pytest.raises(ScanError, match="damaged") as caught:
        scan_tar(tar_of([block] * 1000))
    assert "extended headers" in caught.value.detail


def test_sizes_beyond_any_disk_are_damage_and_not_waited_for():
    record = b"size=999999999999999999\n"
    record = b"%d %s" % (len(record) + 3, record)
    block = header("x", len(record), tarfile.XHDTYPE) + record + bytes(-len(record) % 512)
    with pytest.raises(ScanError, match="damaged"):
        scan_tar(tar_of([block, header("opt/large.bin"), bytes(4096)]))
    with pytest.raises(ScanError, match="damaged"):
        scan_tar(io.BytesIO(header("opt/large.bin", 1 << 80) + bytes(4096)), seekable=True)


def test_an_image_of_a_thousand_layers_is_refused():
    class Source:
        def describe(self) -> ImageDescription:
            return ImageDescription("image", {}, tuple(f"sha256:{number}" for number in range(1001)))

    with pytest.raises(ScanError, match="1,001 layers"):
        scan_image(Source(), SILENT)  # type: ignore[arg-type] # refused before it is read


# Names in ELF files


def test_one_name_given_a_thousand_times_does_not_fill_memory():
    """Entries of 16 bytes that all mean the same name of four kilobytes."""
    made = bytearray(make_elf(soname="s" * 4000, needed=["n"] * 4000))
    entries = made.count(struct.pack("<q", 1))
    assert entries >= 4000
    at = made.index(struct.pack("<qQ", 14, 1 + 2 * 4000))  # DT_SONAME's offset among the strings
    for number in range(4000):
        place = at - 16 * (number + 1)
        struct.pack_into("<qQ", made, place, 1, 1 + 2 * 4000)
    source = ByteSource(io.BytesIO(bytes(made)))
    with pytest.raises(ScanError, match="damaged") as caught:
        ElfReader(source).file()
    assert "names are longer than the file" in caught.value.detail


# Bombs


def bomb(compression: Compression) -> bytes:
    """Sixteen gigabytes of zeros in a file, as many small pieces that a decompressor reads as one."""
    chunk = bytes(64 * MB)
    if compression == "zstd":
        return zstd.compress(header("zeros", 16 << 30)) + zstd.compress(chunk) * 256
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = packer.compress(chunk) + packer.flush()
    return gzip.compress(header("zeros", 16 << 30)) + piece * 256


def write_layout(path: Path, layer: bytes) -> Path:
    config = json.dumps(image_config([b""])).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "config": {"digest": digest(config), "size": len(config)},
            "layers": [{"digest": digest(layer), "size": len(layer)}],
        }
    ).encode()
    files = {f"blobs/{digest(data).replace(':', '/')}": data for data in (config, manifest, layer)}
    index = json.dumps({"schemaVersion": 2, "manifests": [{"digest": digest(manifest)}]}).encode()
    path.write_bytes(layer_tar({**files, "index.json": index}))
    return path


def scan_archive(path: str) -> None:
    with ArchiveSource(Path(path)) as source:
        scan_image(source, SILENT)


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_bomb_is_stopped_after_a_gigabyte(compression: Compression, tmp_path: Path):
    run = measured(scan_archive, str(write_layout(tmp_path / "bomb.tar", bomb(compression))))
    assert run.value == "layer-bomb"
    assert run.peak < 100 * MB
    assert run.seconds < 60


@pytest.mark.slow
def test_an_archive_that_is_a_bomb_is_stopped_after_a_gigabyte(tmp_path: Path):
    path = tmp_path / "bomb.tar.zst"
    path.write_bytes(bomb("zstd"))
    run = measured(scan_archive, str(path))
    assert run.value == "layer-bomb"
    assert run.peak < 100 * MB


@pytest.mark.parametrize("inner", [gzip.compress, zstd.compress])
def test_a_bomb_in_a_bomb_is_no_layer(inner, tmp_path: Path):
    nested = zstd.compress(inner(bytes(64 * MB)))
    with pytest.raises(ScanError) as caught:
        scan_archive(str(write_layout(tmp_path / "nested.tar", nested)))
    assert caught.value.code == "layer-damaged"


def test_a_bomb_among_the_files_is_not_unpacked():
    packed = gzip.compress(bytes(64 * MB))
    run = measured(scanned_sizes, {"opt/a.gz": packed, "opt/b.bin": packed, "opt/site-packages/c.gz": packed})
    assert set(run.value.values()) == {len(packed)}
    assert run.peak < 30 * MB


def scanned_sizes(files: dict[str, bytes]) -> dict[str, int]:
    layer = scan_tar(io.BytesIO(layer_tar(files)))
    return {path: entry.size for path, entry in layer.entries.items() if entry.kind == "file"}


# Names that lead elsewhere


def test_absolute_paths_and_links_stay_in_the_image():
    files = {"etc/os-release": "-> /usr/lib/os-release", "/usr/lib/os-release": "ID=inside\n"}
    outside = {
        "a": "-> ../../../../etc/passwd",
        "b": "-> /proc/self/root/etc/passwd",
        "c/d": "=> /etc/../../x",
    }
    layer = scan_tar(io.BytesIO(layer_tar({**files, **outside})))
    image = ImageFiles(ImageDescription("image", {}, ("sha256:0",)), [layer])
    assert image.resolve("etc/os-release") == "usr/lib/os-release"
    assert [image.resolve(name) for name in ("a", "b", "c/d")] == [None, None, None]


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_never_opened(kind: bytes):
    names = ("etc/os-release", "var/lib/dpkg/status", "opt/site-packages/x.so", "root/.ssh/id_rsa")
    layer = scan_tar(tar_of(header(name, kind=kind) for name in names))
    assert {layer.entries[name].kind for name in names} == {"other"}
    assert not layer.facts
