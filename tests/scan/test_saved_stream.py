"""Archives as engines write them, read as a stream: what comes last says what the layers were."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from stackbuild.errors import ScanError
from stackbuild.scan.layer import ScannedLayer
from stackbuild.scan.layer_scanner import LayerScanner
from stackbuild.scan.sources.saved_stream import SavedStream
from tests.support.layer_tars import (
    Compression,
    Content,
    compressed,
    digest,
    image_config,
    layer_tar,
    oci_layout_files,
    write_docker_archive,
)

LAYERS = (
    layer_tar({"{odd": "a name as JSON begins", "etc/os-release": "ID=debian\n"}),
    layer_tar({"opt/large.bin": b"x" * (3 << 20), "opt/.wh.gone": ""}),
)
DIFF_IDS = tuple(digest(layer) for layer in LAYERS)


class OneWay(io.RawIOBase):
    """A stream that cannot be sought, and gives as much as a socket would."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._stream = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        return self._stream.readinto(memoryview(buffer)[:10_000])


def read(archive: bytes, diff_ids: tuple[str, ...] = DIFF_IDS, wanted: tuple[str, ...] | None = None):
    found: dict[str, ScannedLayer] = {}
    stream = SavedStream[ScannedLayer](io.BufferedReader(OneWay(archive)), "image")
    stream.read_layers(diff_ids, diff_ids if wanted is None else wanted, LayerScanner(), found.__setitem__)
    return found


def expected() -> dict[str, ScannedLayer]:
    scanner = LayerScanner()
    return {digest(layer): scanner.of_tar(io.BytesIO(layer)) for layer in LAYERS}


def newer_archive(compression: Compression) -> bytes:
    """As engines from 25 on write it: an OCI layout, and a manifest for older ones."""
    files: dict[str, Content] = dict(oci_layout_files(LAYERS, compression=compression))
    layers = [f"blobs/{digest(compressed(layer, compression)).replace(':', '/')}" for layer in LAYERS]
    files["manifest.json"] = json.dumps([{"Config": "blobs/sha256/x", "Layers": layers}]).encode()
    return layer_tar(files)


def test_layers_are_those_of_the_manifest_at_the_end(tmp_path: Path):
    assert read(write_docker_archive(tmp_path / "a.tar", LAYERS).read_bytes()) == expected()


@pytest.mark.parametrize("compression", ["", "gzip", "zstd"])
def test_a_newer_engines_layout(compression: Compression):
    assert read(newer_archive(compression)) == expected()


def test_a_layer_that_is_there_twice_is_kept_once():
    files: dict[str, Content] = {
        "b/layer.tar": "-> ../a/layer.tar",
        "a/layer.tar": LAYERS[0],
        "c/layer.tar": LAYERS[1],
        "manifest.json": json.dumps([{"Layers": ["a/layer.tar", "c/layer.tar", "b/layer.tar"]}]).encode(),
        "repositories": b"{}",
    }
    assert read(layer_tar(files), (*DIFF_IDS, DIFF_IDS[0])) == expected()


def test_only_what_is_wanted_is_handed_over(tmp_path: Path):
    archive = write_docker_archive(tmp_path / "a.tar", LAYERS).read_bytes()
    assert set(read(archive, wanted=DIFF_IDS[1:])) == {DIFF_IDS[1]}


@pytest.mark.parametrize(
    "manifest", [None, b"{", b"[]", b"[{}]", b'[{"Layers": ["a"]}]', b'[{"Layers": ["a", "b"]}]', b"[[]]"]
)
def test_a_manifest_that_does_not_fit_is_damage(manifest: bytes | None):
    files: dict[str, Content] = {
        "a/layer.tar": LAYERS[0],
        "x.json": json.dumps(image_config(LAYERS)).encode(),
    }
    if manifest is not None:
        files["manifest.json"] = manifest
    with pytest.raises(ScanError) as caught:
        read(layer_tar(files))
    assert caught.value.code == "archive-damaged"


def test_a_cut_anywhere_is_an_error_of_ours():
    archive = newer_archive("gzip")
    for length in range(0, len(archive.rstrip(b"\0")), 701):
        with pytest.raises(ScanError) as caught:
            read(archive[:length])
        assert caught.value.code in ("archive-damaged", "layer-damaged")
