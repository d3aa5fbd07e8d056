"""Several entries of one path, several names of one file, and paths as deep as they can be."""

from __future__ import annotations

import io
import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer import ScannedLayer
from stackbuild.scan.layer_scanner import scan_folder, scan_tar
from stackbuild.scan.scan import Scan, scan_of
from stackbuild.scan.sources.interface import ImageDescription
from tests.scan.test_contents import SITE, distribution, scanned
from tests.support.elf import make_elf
from tests.support.layer_tars import Content, image_files, layer_tar

STATUS = "Package: a\nStatus: install ok installed\nVersion: 1\n\n"
END = bytes(1024)
SYSTEM = "usr/local/lib/python3.12/site-packages"
CACHE = "root/.cache/uv/archive-v0/k3jd"


def in_turn(*parts: Mapping[str, Content]) -> Scan:
    """A layer whose tar has these parts one after the other."""
    tars = [layer_tar(part) for part in parts]
    tar = b"".join(tar.rstrip(b"\0").ljust(-(-len(tar.rstrip(b"\0")) // 512) * 512, b"\0") for tar in tars)
    layer = scan_tar(io.BytesIO(tar + END))
    return scan_of(ImageFiles(ImageDescription("x", {}, ("sha256:0",), commands=("",)), [layer]))


@pytest.mark.parametrize("last", ["", "-> ../x", "=> usr/x", None])
def test_of_several_entries_of_a_path_the_last_counts(last: Content) -> None:
    library = make_elf(soname="libcudart.so.12")
    assert not in_turn({"var/lib/dpkg/status": STATUS}, {"var/lib/dpkg/status": last}).packages
    assert not in_turn({"usr/lib/libcudart.so.12": library}, {"usr/lib/libcudart.so.12": last}).libraries
    assert in_turn({"var/lib/dpkg/status": last}, {"var/lib/dpkg/status": STATUS}).packages


def test_what_lay_in_a_folder_is_gone_with_it_and_what_comes_later_is_there() -> None:
    folder = {"var/lib/dpkg": None, "var/lib/dpkg/status": STATUS, "var/lib/dpkg-x/y": "z"}
    scan = in_turn(folder, {"var/lib/dpkg": "-> ../x"})
    assert [path for path, placed in scan.files.placed() if placed.entry.kind != "dir"] == [
        "var/lib/dpkg",
        "var/lib/dpkg-x/y",
    ]
    assert not scan.packages
    again = in_turn(
        folder, {"var/lib/dpkg": "-> ../x"}, {"var/lib/dpkg": None, "var/lib/dpkg/status": STATUS}
    )
    assert [item.name for item in again.packages] == ["a"]


@pytest.mark.parametrize("name", [".wh.", "etc/.wh."])
def test_a_whiteout_of_nothing_deletes_nothing(name: str) -> None:
    files = image_files({"etc/os-release": "ID=debian\n"}, {name: ""})
    assert "etc/os-release" in files
    assert any("does not say what" in problem for problem in files.layers[1].problems)


def linked(first: str, others: tuple[str, ...], files: Mapping[str, Content]) -> dict[str, Content]:
    """Files in one folder, and hard links to them in others."""
    found: dict[str, Content] = {f"{first}/{name}": content for name, content in files.items()}
    for folder in others:
        found |= {f"{folder}/{name}": f"=> {first}/{name}" for name in files}
    return found


def installed(site: str, *, first: str, others: tuple[str, ...]) -> dict[str, Content]:
    """A distribution as uv installs it from its cache: all but its RECORD has two names."""
    library = make_elf(soname="libfast.so")
    whole = distribution("fast", "1", {"fast/__init__.py": b"x = 1\n", "fast/a.so": library}, site)
    record = f"{site}/fast-1.dist-info/RECORD"
    shared = {
        path.removeprefix(f"{site}/"): content
        for path, content in whole.items()
        if content is not None and path != record
    }
    return {**linked(first, others, shared), record: whole[record]}


@pytest.mark.parametrize("site", [SITE, SYSTEM, "venv/lib/python3.12/site-packages"])
@pytest.mark.parametrize("cache_first", [True, False])
def test_a_distribution_is_where_it_is_installed_and_not_in_the_cache_it_is_linked_from(
    site: str, cache_first: bool
) -> None:
    first, other = (CACHE, site) if cache_first else (site, CACHE)
    scan = scanned(installed(site, first=first, others=(other,)))
    (found,) = scan.python.distributions
    assert (found.environment, found.record.listed, found.record.missing, found.record.changed) == (
        site,
        4,
        (),
        (),
    )
    assert [*scan.libraries] == [f"{site}/fast/a.so"]
    assert scan.python.owner(f"{site}/fast/a.so") == found


def test_a_distribution_is_in_every_environment_that_it_is_linked_into() -> None:
    other = "opt/other/lib/python3.12/site-packages"
    layer = installed(SITE, first=CACHE, others=(SITE, other))
    layer[f"{other}/fast-1.dist-info/RECORD"] = layer[f"{SITE}/fast-1.dist-info/RECORD"]
    found = scanned(layer).python.distributions
    assert [(item.environment, item.record.listed, item.record.missing) for item in found] == [
        (other, 4, ()),
        (SITE, 4, ()),
    ]


def test_a_changed_file_of_two_names_is_found_changed() -> None:
    layer = installed(SYSTEM, first=CACHE, others=(SYSTEM,))
    layer[f"{CACHE}/fast/__init__.py"] = b"x = 2\n"
    (found,) = scanned(layer).python.distributions
    assert found.record.changed == (f"{SYSTEM}/fast/__init__.py",)


def test_a_file_that_has_its_only_names_in_a_cache_is_there() -> None:
    layer = linked(
        CACHE, ("root/.cache/uv/archive-v0/other",), {"x-1.dist-info/METADATA": "Name: x\nVersion: 1\n"}
    )
    assert {item.environment for item in scanned(layer).python.distributions} == {
        CACHE,
        "root/.cache/uv/archive-v0/other",
    }


def test_the_folder_of_an_engine_gives_what_the_tar_gives(tmp_path: Path) -> None:
    whole = distribution("fast", "1", {"fast/a.so": make_elf(soname="libfast.so")}, SYSTEM)
    for path, content in whole.items():
        file = tmp_path / path
        if isinstance(content, str | bytes):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            if not path.endswith("/RECORD"):
                cached = tmp_path / path.replace(SYSTEM, CACHE)
                cached.parent.mkdir(parents=True, exist_ok=True)
                os.link(file, cached)
    folder, tar = scan_folder(tmp_path), scan_tar(io.BytesIO(layer_tar_of(tmp_path)))
    assert told(folder) == told(tar)
    assert SYSTEM in str(folder.facts["metadata"])


def layer_tar_of(folder: Path) -> bytes:
    """The tar of a folder in the order of a walk, which engines write."""
    names = sorted((path.relative_to(folder) for path in folder.rglob("*")), key=lambda path: path.parts)
    files: dict[str, Content] = {}
    first: dict[int, str] = {}
    for name in names:
        path = folder / name
        if path.is_dir():
            files[str(name)] = None
        elif (inode := path.stat().st_ino) in first:
            files[str(name)] = f"=> {first[inode]}"
        else:
            first[inode] = str(name)
            files[str(name)] = path.read_bytes()
    return layer_tar(files)


def told(layer: ScannedLayer) -> object:
    kinds = {path: (entry.kind, entry.size, entry.linkname) for path, entry in layer.entries.items()}
    return kinds, layer.facts, layer.problems


def test_deep_paths_take_no_longer_for_being_deep() -> None:
    """Two thousand folders in each other, below which something is deleted."""
    deep = "a/" * 2_040

    def seconds(folder: str) -> float:
        lower = {f"{folder}{number}": "" for number in range(500)}
        begun = time.process_time()
        files = image_files(lower, {"b/.wh.x": "", f"{'a/' * 3}.wh.b": "", "c": None}, {"c": "file"})
        assert sum(placed.entry.kind == "file" for _, placed in files.placed()) == 501
        return time.process_time() - begun

    # Each folder of each path was looked at: a hundred times as long.
    assert seconds(deep) < 20 * seconds("a/") + 0.5


def test_of_folders_in_each_other_each_path_is_found_once() -> None:
    names = ["".join(part) for part in itertools.product("ab", "-/0", "ab", "-/0", "ab")]
    lower: dict[str, Content] = dict.fromkeys(names, "")
    deleted = ("a", "a/b", "b/a", "b-a")
    upper: dict[str, Content] = {
        f"{path[: path.rfind('/') + 1]}.wh.{path.rpartition('/')[2]}": "" for path in deleted
    }
    files = image_files(lower, upper)
    assert {path for path, placed in files.placed() if placed.entry.kind == "file"} == {
        path for path in names if not any(f"{path}/".startswith(f"{gone}/") for gone in deleted)
    }


def test_folders_that_a_tar_leaves_out_are_those_that_an_engine_makes(tmp_path: Path) -> None:
    """The verdict of a layer read from its tar was another than that of the same layer read from an engine."""
    library, site = "opt/lib/libk.so", f"{SITE}/x.py"
    files: dict[str, Content] = {library: make_elf(soname="libk.so"), site: "x"}
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(content if isinstance(content, bytes) else b"x")
    layer = scan_tar(io.BytesIO(layer_tar(files)))
    assert told(layer) == told(scan_folder(tmp_path))
    scan = scanned(files)
    assert scan.files.is_folder("opt/lib")
    assert [item.path for item in scan.python.environments] == [SITE]
    deleting = scan_tar(io.BytesIO(layer_tar({"srv/a/.wh.b": "", "etc/c/.wh..wh..opq": ""})))
    assert [*deleting.entries] == ["etc", "etc/c", "srv", "srv/a"]
