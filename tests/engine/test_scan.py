"""An image in a real engine: read from its folders, from its archive, from the store; a registry without pulling."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.engine.archive import docker_archive
from stackbuild.engine.docker_engine import Engine
from stackbuild.registry.client import RegistryClient
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.engine import EngineSource
from stackbuild.scan.sources.registry import RegistrySource
from stackbuild.store.store import Store
from tests.support.elf import make_elf
from tests.support.layer_tars import SILENT, Compression, compressed, digest, image_config, layer_tar
from tests.support.registry import Registry

pytestmark = pytest.mark.engine

# Of this process alone: tests of one file may run in two.
NAME = f"stackbuild-test-scan-{os.getpid()}:1"
LAYERS = (
    layer_tar(
        {
            "etc": None,
            "etc/os-release": "ID=debian\nVERSION_ID=12\n",
            "opt": None,
            "opt/old": "x" * 100,
            "opt/d": None,
            "opt/d/hidden": "y",
            "usr": None,
            "usr/lib": None,
            "usr/lib/liba.so.1": make_elf(soname="liba.so.1"),
            "usr/lib/libb.so.1": "=> usr/lib/liba.so.1",
            "lib": "-> usr/lib",
        },
        modes={"opt": 0o755},
    ),
    layer_tar({"opt": None, "opt/.wh.old": "", "opt/d": None, "opt/d/.wh..wh..opq": "", "opt/d/new": "z"}),
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    paths = []
    for number, layer in enumerate(LAYERS):
        path = tmp_path / f"{number}.tar"
        path.write_bytes(layer)
        paths.append(path)
    config = image_config(LAYERS, Env=["A=b"])
    pairs = list(zip(config["rootfs"]["diff_ids"], paths, strict=True))
    with Engine.connect() as engine:
        engine.load(docker_archive(json.dumps(config).encode(), pairs, [NAME]))
        try:
            yield engine
        finally:
            engine.remove_image(NAME)


def check(files: ImageFiles) -> None:
    assert {path for path, _ in files.placed()} >= {"etc/os-release", "opt/d/new", "usr/lib/liba.so.1", "lib"}
    assert "opt/old" not in files
    assert "opt/d/hidden" not in files
    assert {(item.path, item.size) for item in files.hidden} == {("opt/old", 100), ("opt/d/hidden", 1)}
    assert files.resolve("lib/libb.so.1") == "usr/lib/liba.so.1"
    assert files.description.environment == {"A": "b"}


def test_folders_archive_and_store_give_the_same_layers(engine: Engine, tmp_path: Path):
    from_archive = scan_image(EngineSource(engine, NAME, folders=False), SILENT)
    check(from_archive)
    from_folders = scan_image(EngineSource(engine, NAME), SILENT)
    check(from_folders)
    assert from_folders.layers == from_archive.layers
    store = Store(tmp_path / "store")
    for layer in LAYERS:
        with store.new_layer(f"key{len(layer)}") as sink:
            sink.write(layer)
    from_store = scan_image(EngineSource(engine, NAME, store=store, folders=False), SILENT)
    assert from_store.layers == from_archive.layers


def test_layers_that_are_evicted_before_they_are_read_come_from_the_engine(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = Store(tmp_path / "store")
    gone = dict.fromkeys((digest(layer) for layer in LAYERS), tmp_path / "gone.tar")
    monkeypatch.setattr(store, "layer_tars", lambda: gone)
    check(scan_image(EngineSource(engine, NAME, store=store, folders=False), SILENT))


def test_the_second_scan_reads_no_layer(engine: Engine, tmp_path: Path):
    store = Store(tmp_path / "store")
    scan_image(EngineSource(engine, NAME), SILENT, store=store)
    source = EngineSource(engine, NAME)
    source.scan_layers = None  # type: ignore[method-assign, assignment]
    check(scan_image(source, SILENT, store=store))


def test_a_registry_is_read_without_pulling(engine: Engine, tmp_path: Path):
    import docker

    with Registry(tmp_path / "registry") as registry:
        name = f"{registry.address}/scan/image:1"
        engine.tag(NAME, name)
        client = docker.from_env()
        try:
            client.images.push(name)
            engine.remove_image(name)
            with RegistryClient() as reader:
                files = scan_image(RegistrySource(reader, name), SILENT)
            check(files)
            assert engine.image(name) is None
        finally:
            engine.remove_image(name)
            client.close()
    assert files.layers == scan_image(EngineSource(engine, NAME), SILENT).layers


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_registrys_layers_are_read_however_they_are_compressed(compression: Compression, tmp_path: Path):
    config = json.dumps(image_config(LAYERS, Env=["A=b"])).encode()
    with Registry(tmp_path / "registry") as registry:
        child = registry.put_image(
            "scan/packed", config, [compressed(layer, compression) for layer in LAYERS]
        )
        registry.put_index("scan/packed", "1", {"linux/amd64": child})
        with RegistryClient() as reader:
            files = scan_image(RegistrySource(reader, f"{registry.address}/scan/packed:1"), SILENT)
    check(files)
