"""Tars whole, cut at every block, overwritten at random, and made to do harm."""

from __future__ import annotations

import io
import random
import tarfile

import pytest

from stackbuild.errors import ScanError
from stackbuild.scan.layer_scanner import scan_tar
from stackbuild.scan.tar_stream import TarStream
from tests.support.layer_tars import layer_tar

LONG = "a" * 90 + "/" + "b" * 120 + "/" + "c" * 200


def names(data: bytes, *, seekable: bool = True) -> list[str]:
    stream = io.BytesIO(data)
    return [member.name for member in TarStream(stream, seekable=stream if seekable else None)]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("seekable", [True, False])
def test_every_form_gives_names_links_and_content(form: int, seekable: bool):
    stream = io.BytesIO()
    long = LONG if form != tarfile.USTAR_FORMAT else "a" * 90 + "/" + "b" * 90
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for name, size in ((long, 700), ("etc/x", 0), ("größe", 513)):
            member = tarfile.TarInfo(name)
            member.size, member.uid = size, 3_000_000 if form == tarfile.GNU_FORMAT else 7
            archive.addfile(member, io.BytesIO(b"z" * size))
    data = io.BytesIO(stream.getvalue())
    tar = TarStream(data, seekable=data if seekable else None)
    found = [(member.name, member.size, member.uid, tar.read(10_000)) for member in tar]
    assert [(name, size, content) for name, size, _, content in found] == [
        (long, 700, b"z" * 700),
        ("etc/x", 0, b""),
        ("größe", 513, b"z" * 513),
    ]
    assert {uid for _, _, uid, _ in found} == {3_000_000 if form == tarfile.GNU_FORMAT else 7}


@pytest.mark.parametrize("seekable", [True, False])
def test_a_cut_anywhere_is_an_error_of_ours(seekable: bool):
    data = layer_tar({"etc/os-release": "ID=debian\n", LONG: b"x" * 3000, "usr/bin/a": "=> etc/os-release"})
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512 + 1024  # the end marker; the rest is padding
    for length in range(0, end, 64):
        with pytest.raises(ScanError, match="damaged or cut off") as caught:
            scan_tar(io.BytesIO(data[:length]), seekable=seekable)
        assert caught.value.code == "layer-damaged"
    scan_tar(io.BytesIO(data[:end]), seekable=seekable)


def test_overwritten_at_random_gives_entries_or_an_error_of_ours():
    data = layer_tar(
        {
            "var/lib/dpkg/status": "Package: a\nStatus: install ok installed\nVersion: 1\n\n",
            "usr/lib/python3/site-packages/a-1.dist-info/RECORD": "a.py,sha256=AAAA,1\n",
            "usr/lib/python3/site-packages/a-1.dist-info/METADATA": "Name: a\nVersion: 1\n\n",
            LONG: b"\x7fELF" + bytes(200),
        }
    )
    draw = random.Random(20240601)
    for _ in range(800):
        changed = bytearray(data)
        at = draw.randrange(len(data) // 512) * 512
        for _ in range(draw.randint(1, 5)):
            changed[at + draw.randrange(512)] = draw.randrange(256)
        # The checksum is made right again, so that what is behind it is reached.
        header = changed[at : at + 512]
        total = sum(header[:148]) + 256 + sum(header[156:])
        changed[at + 148 : at + 156] = f"{total:06o}\0 ".encode()
        try:
            scan_tar(io.BytesIO(bytes(changed)))
        except ScanError as error:
            assert error.code in ("layer-damaged", "layer-too-large")  # noqa: PT017


def test_an_extended_header_of_gigabytes_is_refused_before_it_is_read():
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, 8 << 30
    with pytest.raises(ScanError, match="damaged"):
        names(member.tobuf(tarfile.GNU_FORMAT) + bytes(2048), seekable=False)


def test_paths_that_leave_the_image_are_left_out_and_told():
    layer = scan_tar(io.BytesIO(layer_tar({"../../etc/passwd": "x", "/abs/./ok": "y", "a": "=> ../b"})))
    assert set(layer.entries) == {"abs", "abs/ok"}
    assert len(layer.problems) == 2


def test_devices_are_entries_without_content():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("dev/sda")
        member.type, member.mode = tarfile.BLKTYPE, 0o4666
        archive.addfile(member)
    assert scan_tar(io.BytesIO(stream.getvalue())).entries["dev/sda"].kind == "other"


def test_more_files_than_any_image_has_is_an_error():
    data = layer_tar({f"f{number}": "" for number in range(50)})
    with pytest.raises(ScanError, match="more than 49 files"):
        scan_tar(io.BytesIO(data), most_entries=49)


def test_memory_does_not_grow_with_content():
    import tracemalloc

    data = layer_tar({"usr/lib/big.bin": bytes(64 << 20), "opt/site-packages/big.bin": bytes(32 << 20)})
    tracemalloc.start()
    scan_tar(io.BytesIO(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
