"""The SBOM that is kept: never another image's, never another program's, and never one that was damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from stackbuild.sbom import kept
from stackbuild.sbom.kept import LIBRARIES, RECORD_KIND, kept_scan_sbom, sbom_key
from stackbuild.sbom.scanned import scan_sbom
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.scan import Scan, scan_of
from stackbuild.store.store import Store
from tests.support.layer_tars import Content, image_files

LAYER: dict[str, Content] = {
    "etc/os-release": "ID=debian\nVERSION_ID=12\n",
    "opt/lib/python3.12/site-packages/one-1.dist-info/METADATA": "Name: one\nVersion: 1\n",
}
# Imported with the writer, and nothing of them is in the document: typing, and pydantic's and the library's other formats.
WITHOUT_PART = {
    "annotated-types",
    "defusedxml",
    "pydantic_core",
    "typing-inspection",
    "typing_extensions",
}


def scanned(**run_config: Any) -> Scan:
    return scan_of(image_files(LAYER, **run_config))


def described(scan: Scan, **changes: Any) -> Scan:
    """The scan of an image that is described otherwise."""
    return scan_of(ImageFiles(replace(scan.files.description, **changes), scan.files.layers))


def only_record(store: Store) -> Path:
    (path,) = (store.root / "records" / RECORD_KIND).iterdir()
    return path


def test_a_second_scan_gets_the_bytes_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    written = kept_scan_sbom(scanned(), store)
    assert written == scan_sbom(scanned())
    monkeypatch.setattr(kept, "_written", lambda *_: pytest.fail("it is at hand"))
    assert kept_scan_sbom(scanned(), store) == written


def test_a_document_that_is_at_hand_needs_no_library(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from stackbuild.sbom.kept import kept_scan_sbom;"
        "from stackbuild.scan.scan import scan_of; from stackbuild.store.store import Store;"
        "from tests.support.layer_tars import image_files;"
        "kept_scan_sbom(scan_of(image_files({'etc': None})), Store(Path(sys.argv[1])));"
        "print('cyclonedx' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert said == ["True\n", "False\n"]


def test_without_a_store_nothing_is_kept_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    assert kept_scan_sbom(scanned(), None) == kept_scan_sbom(scanned(), Store(tmp_path))


def test_a_folder_that_is_no_layer_is_written_anew(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert kept_scan_sbom(described(scanned(), diff_ids=("",)), store)
    assert not (tmp_path / "records" / RECORD_KIND).exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("one", "two"),
        lambda text: text[: len(text) // 2],
        lambda text: "{}",
        lambda text: '{"sbom": [1], "sha256": null}',
    ],
    ids=["changed", "cut", "empty", "other-types"],
)
def test_a_damaged_record_is_written_anew(tmp_path: Path, damage: Callable[[str], str]) -> None:
    store = Store(tmp_path)
    written = kept_scan_sbom(scanned(), store)
    path = only_record(store)
    path.write_text(damage(path.read_text()))
    assert kept_scan_sbom(scanned(), store) == written
    assert kept_scan_sbom(scanned(), store) == written


@pytest.mark.parametrize(
    "changes",
    [
        {"diff_ids": ("sha256:" + "0" * 64,)},
        {"config_digest": "sha256:" + "1" * 64},
        {"commands": ("RUN other",)},
        {"config": {"os": "linux", "architecture": "arm64"}},
        {"config": {"os": "linux", "architecture": "amd64", "created": "2026-01-01T00:00:00Z"}},
        {"config": {"os": "linux", "architecture": "amd64", "config": {"Labels": {"a": "b"}}}},
        {"config": {"os": "linux", "architecture": "amd64", "config": {"Env": ["LD_LIBRARY_PATH=/x"]}}},
    ],
    ids=["layers", "digest", "commands", "platform", "created", "labels", "environment"],
)
def test_another_image_has_another_key(tmp_path: Path, changes: dict[str, Any]) -> None:
    image = described(scanned(), config={"os": "linux", "architecture": "amd64"})
    assert sbom_key(described(image, **changes), "", tmp_path) != sbom_key(image, "", tmp_path)


def test_the_name_is_no_part_of_the_key_and_the_digest_that_a_caller_knows_is(tmp_path: Path) -> None:
    key = sbom_key(scanned(), "", tmp_path)
    assert sbom_key(described(scanned(), name="by another name"), "", tmp_path) == key
    assert sbom_key(scanned(), "sha256:" + "2" * 64, tmp_path) != key


def test_another_program_has_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "package" / "module.py"
    module.parent.mkdir()
    module.write_text("a = 1\n")
    cache = tmp_path / "package" / "__pycache__"
    cache.mkdir()
    keys = [sbom_key(scanned(), "", tmp_path)]
    (cache / "module.pyc").write_bytes(b"byte-code")
    assert sbom_key(scanned(), "", tmp_path) == keys[0], "byte-code comes and goes"
    before = module.stat()
    # As long as before, and dated as before. The clock of the kernel moves in steps.
    while module.stat().st_ctime_ns == before.st_ctime_ns:
        module.write_text("a = 2\n")
        os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    keys.append(sbom_key(scanned(), "", tmp_path))
    (tmp_path / "package" / "new.json").write_text("{}")
    keys.append(sbom_key(scanned(), "", tmp_path))
    monkeypatch.setattr(sys, "version", "3.99.0")
    keys.append(sbom_key(scanned(), "", tmp_path))
    for name in LIBRARIES:
        with monkeypatch.context() as changed:
            changed.setattr(kept, "version", lambda asked, name=name: "99" if asked == name else "1")
            keys.append(sbom_key(scanned(), "", tmp_path))
    assert len(set(keys)) == len(keys)


def test_a_library_that_is_not_there_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = sbom_key(scanned(), "", tmp_path)
    monkeypatch.setattr(kept, "LIBRARIES", (*LIBRARIES[:-1], "a-library-that-nobody-has"))
    assert sbom_key(scanned(), "", tmp_path) != key


def test_every_library_that_the_writer_imports_is_named() -> None:
    program = (
        "import sys; before = {*sys.modules}; import stackbuild.sbom.scanned;"
        "print(*{name.partition('.')[0] for name in {*sys.modules} - before})"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    known = packages_distributions()
    imported = {name for module in said.split() for name in known.get(module, ())}
    assert imported - WITHOUT_PART - {"stackbuild", "backports.zstd"} <= set(LIBRARIES)
