"""One image through every kind of archive and folder gives the same files."""

from __future__ import annotations

import bz2
import lzma
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from stackbuild.errors import ScanError
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer import RECORD_KIND
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.scan.sources.folder import FolderSource
from stackbuild.store.store import Store
from tests.support.layer_tars import (
    SILENT,
    Compression,
    compressed,
    digest,
    layer_tar,
    oci_layout_files,
    write_docker_archive,
    zstd,
)

LAYERS = (
    layer_tar(
        {"etc": None, "etc/os-release": "ID=debian\n", "opt/a/x": "one", "opt/b": "gone", "lib": "-> usr/lib"}
    ),
    layer_tar({"opt/.wh.b": "", "opt/a/.wh..wh..opq": "", "opt/a/y": "two", "etc/os-release": "ID=ubuntu\n"}),
)


def scanned(path: Path, **options: str) -> ImageFiles:
    with ArchiveSource(path, **options) as source:
        return scan_image(source, SILENT)


def docker_archive(folder: Path) -> Path:
    return write_docker_archive(folder / "saved.tar", LAYERS)


def gzip_archive(folder: Path) -> Path:
    path = folder / "saved.tar.gz"
    path.write_bytes(compressed(docker_archive(folder).read_bytes(), "gzip"))
    return path


def zstd_archive(folder: Path) -> Path:
    path = folder / "saved.tar.zst"
    path.write_bytes(compressed(docker_archive(folder).read_bytes(), "zstd"))
    return path


def oci_folder(folder: Path) -> Path:
    for name, data in oci_layout_files(LAYERS).items():
        path = folder / "layout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "layout"


def oci_tar(folder: Path) -> Path:
    path = folder / "layout.tar"
    path.write_bytes(layer_tar(oci_layout_files(LAYERS)))
    return path


def oci_tar_of_zstd(folder: Path) -> Path:
    path = folder / "zstd.tar"
    path.write_bytes(layer_tar(oci_layout_files(LAYERS, compression="zstd")))
    return path


def oci_tar_not_compressed(folder: Path) -> Path:
    path = folder / "plain.tar"
    path.write_bytes(layer_tar(oci_layout_files(LAYERS, compression="")))
    return path


@pytest.mark.parametrize(
    "make",
    [
        docker_archive,
        gzip_archive,
        zstd_archive,
        oci_folder,
        oci_tar,
        oci_tar_of_zstd,
        oci_tar_not_compressed,
    ],
)
def test_every_form_gives_the_same_files(make, tmp_path: Path):
    files = scanned(make(tmp_path))
    assert {path for path, _ in files.placed()} == {"etc", "etc/os-release", "lib", "opt", "opt/a", "opt/a/y"}
    assert files.fact("os-release", "etc/os-release") == {"ID": "ubuntu"}
    assert {(item.path, item.layer, item.by, item.replaced) for item in files.hidden} == {
        ("opt/a/x", 0, 1, False),
        ("opt/b", 0, 1, False),
        ("etc/os-release", 0, 1, True),
    }
    assert files.description.platform == "linux/amd64"
    assert files.description.diff_ids == tuple(digest(layer) for layer in LAYERS)
    assert files.description.config_digest.startswith("sha256:")


def test_a_changed_leaf_costs_only_its_layer(tmp_path: Path):
    store = Store(tmp_path / "store")
    with ArchiveSource(docker_archive(tmp_path)) as source:
        scan_image(source, SILENT, store=store)
    changed = (LAYERS[0], layer_tar({"srv/app": "new"}))
    read: list[str] = []
    with ArchiveSource(write_docker_archive(tmp_path / "new.tar", changed)) as source:
        original = source.scan_layers
        source.scan_layers = lambda wanted, done: (read.extend(wanted), original(wanted, done))  # type: ignore[method-assign, assignment, func-returns-value]
        files = scan_image(source, SILENT, store=store)
    assert read == [digest(changed[1])]
    assert "srv/app" in files
    assert "opt/b" in files


def test_the_kept_record_gives_the_same_layer(tmp_path: Path):
    store = Store(tmp_path / "store")
    first = second = None
    for _ in range(2):
        with ArchiveSource(docker_archive(tmp_path)) as source:
            first, second = second, scan_image(source, SILENT, store=store)
    assert first is not None
    assert first.layers == second.layers
    assert store.record(RECORD_KIND, digest(LAYERS[0])) is not None


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.7])
def test_a_cut_archive_is_said(keep: float, tmp_path: Path):
    whole = docker_archive(tmp_path).read_bytes()
    path = tmp_path / "cut.tar"
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(ScanError) as caught:
        scanned(path)
    assert caught.value.code == "archive-damaged"


def with_first_layer(content: bytes, compression: Compression, path: Path) -> Path:
    """A layout whose first layer has this content in place of its own."""
    files = oci_layout_files(LAYERS, compression=compression)
    files[f"blobs/{digest(compressed(LAYERS[0], compression)).replace(':', '/')}"] = content
    path.write_bytes(layer_tar(files))
    return path


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_cut_compressed_layer_is_said(compression: Compression, tmp_path: Path):
    layer = compressed(LAYERS[0], compression)
    for end in (-1, -20, -len(layer) // 2, 5):
        path = with_first_layer(layer[:end], compression, tmp_path / "layout.tar")
        with pytest.raises(ScanError, match="damaged or cut off") as caught:
            scanned(path)
        assert caught.value.code == "layer-damaged"


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_compressed_bytes_overwritten_at_random_are_never_read_as_the_layer(
    compression: Compression, tmp_path: Path
):
    draw, codes = random.Random(8878), set()
    layer = compressed(LAYERS[0], compression)
    for _ in range(60):
        changed = bytearray(layer)
        for _ in range(draw.randint(1, 8)):
            changed[draw.randrange(len(changed))] ^= draw.randint(1, 255)
        path = with_first_layer(bytes(changed), compression, tmp_path / "layout.tar")
        try:
            files = scanned(path)
        except ScanError as error:
            codes.add(error.code)
        else:  # a field that nobody needs, such as gzip's time
            assert files.fact("os-release", "etc/os-release") == {"ID": "ubuntu"}
    assert codes <= {"layer-damaged", "layer-changed"}


def test_skippable_frames_of_zstd_are_passed_over(tmp_path: Path):
    """As zstd:chunked has them: a table of contents in a frame that other readers skip."""
    frame = b"\x50\x2a\x4d\x18" + struct.pack("<I", 7) + b"content"
    layer = compressed(LAYERS[0], "zstd")
    for content in (frame + layer, layer + frame):
        files = scanned(with_first_layer(content, "zstd", tmp_path / "layout.tar"))
        assert "opt/a/y" in files


def test_zstd_that_asks_for_a_gigabyte_of_memory_is_refused(tmp_path: Path):
    stream = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 20})
    layer = bytearray(stream.compress(LAYERS[0]) + stream.flush())
    assert layer[5] >> 3 == 20 - 10  # RFC 8878, 3.1.1.1.2: the window descriptor's exponent
    layer[5] = (30 - 10) << 3
    with pytest.raises(ScanError) as caught:
        scanned(with_first_layer(bytes(layer), "zstd", tmp_path / "layout.tar"))
    assert caught.value.code == "layer-damaged"
    assert "memory" in caught.value.detail


@pytest.mark.parametrize(("name", "compress"), [("xz", lzma.compress), ("bzip2", bz2.compress)])
def test_what_is_not_read_is_named(name: str, compress: Callable[[bytes], bytes], tmp_path: Path):
    path = with_first_layer(compress(LAYERS[0]), "gzip", tmp_path / "layout.tar")
    with pytest.raises(ScanError, match=name) as caught:
        scanned(path)
    assert caught.value.code == "layer-compression-unknown"


def test_a_layer_under_anothers_diff_id_is_refused_and_not_kept(tmp_path: Path):
    files = oci_layout_files(LAYERS, compression="")
    files[f"blobs/{digest(LAYERS[0]).replace(':', '/')}"] = layer_tar({"etc/os-release": "ID=evil\n"})
    path = tmp_path / "layout.tar"
    path.write_bytes(layer_tar(files))
    store = Store(tmp_path / "store")
    with ArchiveSource(path) as source, pytest.raises(ScanError) as caught:
        scan_image(source, SILENT, store=store)
    assert caught.value.code == "layer-changed"
    assert store.record(RECORD_KIND, digest(LAYERS[0])) is None


def test_a_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from stackbuild.scan.sources import decompress

    monkeypatch.setattr(decompress, "_GROWTH_COUNTS_FROM", 1 << 20)
    bomb = (layer_tar({"zeros": bytes(8 << 20)}),)
    path = tmp_path / "bomb.tar"
    path.write_bytes(layer_tar(oci_layout_files(bomb)))
    with pytest.raises(ScanError) as caught:
        scanned(path)
    assert caught.value.code == "layer-bomb"


def test_another_platform_is_named(tmp_path: Path):
    with pytest.raises(ScanError) as caught:
        scanned(oci_tar(tmp_path), platform="linux/riscv64")
    assert caught.value.code == "no-such-platform"
    assert "linux/amd64" in caught.value.do


def test_what_is_no_image_is_said(tmp_path: Path):
    path = tmp_path / "other.tar"
    path.write_bytes(layer_tar({"README": "hello"}))
    with pytest.raises(ScanError) as caught:
        scanned(path)
    assert caught.value.code == "archive-unknown"


def test_a_root_file_system_is_read_as_one_layer(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID="debian"\nVERSION_ID="12"\n')
    (tmp_path / "etc/copy").hardlink_to(tmp_path / "etc/os-release")
    files = scan_image(FolderSource(tmp_path), SILENT)
    # The first name in path order holds the file, whichever was there first.
    assert files.resolve("etc/os-release") == "etc/copy"


def test_links_are_followed_as_a_process_would(tmp_path: Path):
    from tests.support.layer_tars import image_files

    files = image_files(
        {"usr/lib/a.so.1.2": "x", "lib": "-> usr/lib", "usr/lib/a.so": "-> /lib/a.so.1.2", "l": "-> l"}
    )
    assert files.resolve("lib/a.so") == "usr/lib/a.so.1.2"
    assert files.resolve("l") is None
    assert files.resolve("lib/none") is None
