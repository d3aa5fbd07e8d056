from __future__ import annotations

import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackbuild.errors import BuildError
from stackbuild.layers.tree import Entry, FileTree, additions_from_json, additions_to_json
from tests.layers.tars import MERGED_USR
from tests.support.base_image import busybox_rootfs


def test_a_file_system_is_read_from_its_tar() -> None:
    tree = FileTree.from_tar(io.BytesIO(busybox_rootfs()))
    assert tree.get("tmp") == Entry("dir", 0o1777)
    assert tree.get("lib") == Entry("symlink", 0o777, linkname="usr/lib")
    passwd = tree.get("etc/passwd")
    assert passwd is not None
    assert passwd.text.startswith("root:x:0:0:")
    assert tree.resolve("lib/x") == "usr/lib/x"


def test_a_damaged_tar_is_an_error() -> None:
    with pytest.raises(BuildError) as caught:
        FileTree.from_tar(io.BytesIO(busybox_rootfs()[:2000]))
    assert caught.value.code == "tree-unreadable"


def test_names_may_begin_with_a_dot_and_hard_links_are_files() -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for info in (tarfile.TarInfo("./"), tarfile.TarInfo("./a/")):
            info.type, info.mode = tarfile.DIRTYPE, 0o750
            archive.addfile(info)
        archive.addfile(tarfile.TarInfo("./a/x"))
        link = tarfile.TarInfo("./a/y")
        link.type, link.linkname = tarfile.LNKTYPE, "./a/x"
        archive.addfile(link)
    raw.seek(0)
    tree = FileTree.from_tar(raw)
    assert sorted(tree) == ["a", "a/x", "a/y"]
    assert tree.get("a/y") == tree.get("a/x")


def test_deleting_a_directory_takes_what_is_below() -> None:
    tree = MERGED_USR.with_layer({"usr/bin": None})
    assert "usr/bin/sh" not in tree
    assert "usr/lib" in tree
    assert MERGED_USR.with_layer({"var": Entry("file", 0o644)}).get("var/mail") is None


def test_two_layers_that_write_one_path_differently_are_refused() -> None:
    tree = FileTree({"x": Entry("file", 0o644, owner="a 1.0", sha256="1" * 64)})
    tree.with_layer({"x": Entry("file", 0o644, owner="b 2.0", sha256="1" * 64)})
    with pytest.raises(BuildError, match=r"a 1\.0 and b 2\.0 both write /x"):
        tree.with_layer({"x": Entry("file", 0o644, owner="b 2.0", sha256="2" * 64)})


def test_a_lineage_is_about_the_place_and_not_about_the_rest() -> None:
    place = MERGED_USR.lineage("opt/venv")
    assert MERGED_USR.with_layer({"etc/x": Entry("file", 0o644)}).lineage("opt/venv") == place
    assert MERGED_USR.with_layer({"opt": Entry("dir", 0o700)}).lineage("opt/venv") != place
    moved = FileTree({"opt": Entry("symlink", 0o777, linkname="usr")})
    assert moved.lineage("opt/venv") != place


entries = st.builds(
    Entry,
    st.sampled_from(["file", "dir", "symlink", "other"]),
    st.integers(0, 0o7777),
    st.integers(0, 70_000),
    st.integers(0, 70_000),
    linkname=st.text(max_size=5),
    xattrs=st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=2).map(tuple),
    owner=st.text(max_size=3),
    sha256=st.text(max_size=3),
)


@given(st.dictionaries(st.text(min_size=1), st.none() | entries))
def test_additions_survive_json(additions: dict[str, Entry | None]) -> None:
    assert additions_from_json(json.loads(json.dumps(additions_to_json(additions)))) == additions
