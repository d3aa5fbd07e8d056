"""A layer's record gives back the layer, whatever its files are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stackbuild.scan.entries import FileEntry
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer import RECORD_KIND, ScannedLayer
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.store.store import Store
from tests.support.layer_tars import SILENT, layer_tar, write_docker_archive

LAYER = ScannedLayer(
    entries={
        "bin": FileEntry("symlink", 0o777, linkname="usr/bin"),
        "opt/a\nb": FileEntry("file", 0o644, 1000, 1000, 3),
        'opt/q"uote\\': FileEntry("file", 0o4755, size=2**40),
        "opt/latin-\udce9": FileEntry("file", 0o644, size=0),
        "opt/ünïcode 🜁": FileEntry("dir", 0o755),
        "opt/same": FileEntry("hardlink", 0o644, linkname="opt/a\nb"),
        "opt/slash:colon": FileEntry("other", 0o600),
    },
    deleted=("opt/gone", "opt/gone\n"),
    opaque=("var",),
    facts={"text": {"opt/a\nb": ["x"]}},
    problems=("one was left out",),
)


def kept(layer: ScannedLayer) -> ScannedLayer:
    return ScannedLayer.from_record(json.loads(json.dumps(layer.to_record())))


def test_a_record_gives_back_the_layer() -> None:
    assert kept(LAYER) == LAYER
    assert [*kept(LAYER).entries] == [*LAYER.entries]
    assert all(isinstance(entry, FileEntry) for entry in kept(LAYER).entries.values())


def test_a_layer_without_paths_is_kept_too() -> None:
    layer = ScannedLayer(entries={}, deleted=("etc/gone",))
    assert kept(layer) == layer


def test_a_layer_of_one_path() -> None:
    layer = ScannedLayer(entries={"a": FileEntry("file", 0o644, size=1)})
    assert kept(layer) == layer


@pytest.mark.parametrize("path", ["a//b", "//", "a//", "a/"])
def test_a_path_that_no_layer_can_hold_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a path holds"):
        ScannedLayer(entries={path: FileEntry("file", 0o644), "b": FileEntry("file", 0o644)}).to_record()


@pytest.mark.parametrize(
    "damage",
    [
        lambda record: {},
        lambda record: record | {"layer": "{}"},
        lambda record: record | {"layer": None},
        lambda record: record | {"layer": record["layer"].replace("etc", "usr")},
        lambda record: record | {"layer": record["layer"] + "\ud800"},
        lambda record: record | {"sha256": ""},
        lambda record: {"layer": record["layer"]},
    ],
)
def test_a_record_that_was_changed_is_not_used(
    damage: Callable[[dict[str, Any]], dict[str, Any]], tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    path = write_docker_archive(tmp_path / "saved.tar", [layer_tar({"etc/os-release": "ID=debian\n"})])

    def scanned() -> ImageFiles:
        with ArchiveSource(path) as source:
            return scan_image(source, SILENT, store=store)

    first = scanned()
    (diff_id,) = first.description.diff_ids
    record = store.record(RECORD_KIND, diff_id)
    assert record is not None
    store.put_record(RECORD_KIND, diff_id, damage(record))
    assert scanned().layers == first.layers
    assert store.record(RECORD_KIND, diff_id) == record
