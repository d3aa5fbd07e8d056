from __future__ import annotations

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackbuild.errors import BuildError
from stackbuild.layers.tar_writer import MTIME, LayerTarWriter
from stackbuild.layers.tree import Entry, FileTree
from tests.layers.tars import MERGED_USR, layer, members


def put(writer: LayerTarWriter, path: str, data: bytes = b"x", *, owner: str = "") -> str:
    return writer.add_file(path, data, len(data), 0o644, owner=owner)


def test_a_parent_that_is_a_link_of_the_base_is_followed_and_never_replaced() -> None:
    tar, _ = layer(lambda writer: put(writer, "lib/x"))
    assert list(members(tar)) == ["usr", "usr/lib", "usr/lib/x"]


def test_a_directory_entry_over_a_link_of_the_base_writes_nothing() -> None:
    tar, additions = layer(lambda writer: writer.add_directory("lib", 0o700))
    assert members(tar) == {}
    assert additions == {}


def test_existing_directories_keep_mode_owner_and_xattrs() -> None:
    tar, _ = layer(lambda writer: (put(writer, "tmp/x"), put(writer, "var/mail/root")))
    found = members(tar)
    assert found["tmp"][0].mode == 0o1777
    mail = found["var/mail"][0]
    assert (mail.mode, mail.gid) == (0o2775, 8)
    assert mail.pax_headers["SCHILY.xattr.user.kept"] == "yes"


def test_missing_parents_are_roots_with_0755_and_the_constant_mtime() -> None:
    tar, _ = layer(lambda writer: put(writer, "opt/a/b/x"))
    for name in ("opt/a", "opt/a/b", "opt/a/b/x"):
        member = members(tar)[name][0]
        assert (member.uid, member.gid, member.uname, member.gname, member.mtime) == (0, 0, "", "", MTIME)
    assert members(tar)["opt/a"][0].mode == 0o755


def test_binary_xattrs_come_back_unchanged() -> None:
    capability = os.fsdecode(b"\x01\x00\x00\x02\x00\x20\xff\x00")

    def write(writer: LayerTarWriter) -> None:
        writer.add_file("usr/bin/ping", b"p", 1, 0o755, xattrs=(("security.capability", capability),))

    tar, _ = layer(write)
    assert members(tar)["usr/bin/ping"][0].pax_headers["SCHILY.xattr.security.capability"] == capability
    assert FileTree.from_tar(io.BytesIO(tar)).get("usr/bin/ping") == Entry(
        "file", 0o755, xattrs=(("security.capability", capability),)
    )


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", "a//b", "a/./b", ".", "a/", "a\0b"])
def test_a_path_that_could_leave_the_root_is_refused(path: str) -> None:
    with pytest.raises(BuildError) as caught:
        layer(lambda writer: put(writer, path, owner="evil 1.0"))
    assert caught.value.code == "path-escape"
    assert "evil 1.0" in str(caught.value)


@pytest.mark.parametrize("path", [".wh.usr", "usr/.wh.lib", "usr/.wh..wh..opq", ".wh.a/x"])
def test_whiteout_names_are_refused(path: str) -> None:
    for write in (
        lambda writer: put(writer, path),
        lambda writer: writer.add_directory(path),
        lambda writer: writer.add_symlink(path, "x"),
        lambda writer: writer.add_hardlink(path, "x"),
    ):
        with pytest.raises(BuildError) as caught:
            layer(write)
        assert caught.value.code == "whiteout-refused"


def test_only_a_mirroring_writer_may_delete() -> None:
    with pytest.raises(BuildError, match="may not be deleted"):
        layer(lambda writer: writer.add_whiteout("usr/bin/sh"))
    tar, additions = layer(lambda writer: writer.add_whiteout("bin/sh"), mirror=True)
    assert list(members(tar)) == ["usr", "usr/bin", "usr/bin/.wh.sh"]
    assert MERGED_USR.with_layer(additions).get("usr/bin/sh") is None


def test_a_loop_of_links_is_refused() -> None:
    loop = FileTree({"a": Entry("symlink", 0o777, linkname="b"), "b": Entry("symlink", 0o777, linkname="/a")})
    with pytest.raises(BuildError) as caught:
        layer(lambda writer: put(writer, "a/x"), loop)
    assert caught.value.code == "symlink-loop"


def test_links_stop_at_the_root() -> None:
    tree = FileTree({"a": Entry("symlink", 0o777, linkname="../../../b")})
    tar, _ = layer(lambda writer: put(writer, "a/x"), tree)
    assert list(members(tar)) == ["b", "b/x"]


@pytest.mark.parametrize("path", ["usr/lib", "lib", "usr/bin/sh"])
def test_a_file_over_a_directory_or_link_of_the_base_is_refused_by_name(path: str) -> None:
    with pytest.raises(BuildError) as caught:
        layer(lambda writer: put(writer, path))
    assert caught.value.code == "path-taken"
    assert f"/{path}" in str(caught.value)


def test_a_file_may_replace_a_file_of_the_base() -> None:
    tar, additions = layer(lambda writer: put(writer, "etc/passwd", b"new\n"))
    assert members(tar)["etc/passwd"][1] == b"new\n"
    entry = additions["etc/passwd"]
    assert entry is not None
    assert entry.text == "new\n"


def test_a_file_below_a_file_is_refused() -> None:
    for write in (
        lambda writer: put(writer, "etc/passwd/x"),
        lambda writer: (put(writer, "a"), put(writer, "a/x")),
    ):
        with pytest.raises(BuildError) as caught:
            layer(write)
        assert caught.value.code == "parent-not-directory"


def test_two_writers_of_one_path_are_both_named() -> None:
    with pytest.raises(BuildError) as caught:
        layer(lambda w: (put(w, "lib/x", b"1", owner="a 1.0"), put(w, "usr/lib/x", b"2", owner="b 2.0")))
    assert caught.value.code == "file-conflict"
    assert "a 1.0 and b 2.0 both write /usr/lib/x" in str(caught.value)


def test_the_same_bytes_twice_are_written_once() -> None:
    tar, _ = layer(lambda w: (put(w, "opt/x", b"1", owner="a"), put(w, "opt/x", b"1", owner="b")))
    assert members(tar)["opt/x"][1] == b"1"


def test_an_earlier_layers_file_is_not_replaced_by_other_bytes() -> None:
    _, below = layer(lambda writer: put(writer, "opt/x", b"1", owner="a 1.0"))
    tree = MERGED_USR.with_layer(below)
    with pytest.raises(BuildError, match=r"a 1\.0 and b 2\.0 both write /opt/x"):
        layer(lambda writer: put(writer, "opt/x", b"2", owner="b 2.0"), tree)
    tar, again = layer(lambda writer: put(writer, "opt/x", b"1", owner="b 2.0"), tree)
    assert "opt/x" in members(tar)
    tree.with_layer(again)


@pytest.mark.parametrize(("size", "how"), [(2, "ends early"), (0, "goes on")])
def test_content_of_another_length_than_declared_is_refused(size: int, how: str) -> None:
    with pytest.raises(BuildError, match=how):
        layer(lambda writer: writer.add_file("x", io.BytesIO(b"1"), size, 0o644))


def test_a_hard_link_needs_its_target_in_the_same_layer() -> None:
    tar, _ = layer(lambda writer: (put(writer, "usr/bin/a"), writer.add_hardlink("bin/b", "bin/a")))
    assert members(tar)["usr/bin/b"][0].linkname == "usr/bin/a"
    with pytest.raises(BuildError) as caught:
        layer(lambda writer: writer.add_hardlink("usr/bin/b", "usr/bin/dash"))
    assert caught.value.code == "hardlink-target-missing"


def test_a_mirroring_writer_replaces_links_and_changes_modes() -> None:
    def write(writer: LayerTarWriter) -> None:
        writer.add_directory("tmp", 0o755)
        put(writer, "usr/bin/sh", b"shell")

    tar, _ = layer(write, mirror=True)
    assert members(tar)["tmp"][0].mode == 0o755
    assert members(tar)["usr/bin/sh"][0].isreg()


def test_a_link_written_earlier_in_the_layer_is_followed() -> None:
    tar, _ = layer(lambda w: (put(w, "v/lib/a"), w.add_symlink("v/lib64", "lib"), put(w, "v/lib64/b")))
    assert list(members(tar)) == ["v", "v/lib", "v/lib/a", "v/lib64", "v/lib/b"]


def test_nothing_added_is_empty() -> None:
    writer = LayerTarWriter(io.BytesIO(), MERGED_USR)
    assert writer.empty
    put(writer, "x")
    assert not writer.empty


def test_large_content_is_streamed_in_blocks() -> None:
    size = 64 << 20
    largest = 0

    class Zeros:
        left = size

        def read(self, count: int, /) -> bytes:
            taken = min(count, self.left)
            self.left -= taken
            return bytes(taken)

    class Discard:
        def write(self, data: bytes, /) -> int:
            nonlocal largest
            largest = max(largest, len(data))
            return len(data)

    writer = LayerTarWriter(Discard(), FileTree())
    writer.add_file("big", Zeros(), size, 0o644)
    writer.close()
    assert largest <= 3 << 20


names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=60
).filter(lambda name: name not in (".", "..") and not name.startswith(".wh."))
paths = st.lists(names | st.sampled_from(["lib", "bin", "tmp", "usr", "var", "etc"]), min_size=1, max_size=8)


@given(st.dictionaries(paths.map("/".join), st.binary(max_size=2000), max_size=20))
def test_any_paths_come_back_with_their_content_and_leave_the_base_alone(files: dict[str, bytes]) -> None:
    def write(writer: LayerTarWriter) -> None:
        for path, data in sorted(files.items(), key=lambda item: MERGED_USR.resolve(item[0]).split("/")):
            try:
                put(writer, path, data)
            except BuildError as error:
                refusals.append((path, error.code))

    refusals: list[tuple[str, str]] = []
    tar, _ = layer(write)
    found = members(tar)
    refused = {path for path, code in refusals}
    assert {code for _, code in refusals} <= {"path-taken", "parent-not-directory", "file-conflict"}
    for path, data in files.items():
        if path not in refused:
            assert found[MERGED_USR.resolve(path)][1] == data
    assert list(found) == sorted(found, key=lambda name: name.split("/"))
    for name, (member, _) in found.items():
        before = MERGED_USR.get(name)
        if before is not None and before.kind == "dir":
            assert member.isdir()
            assert (member.mode, member.uid, member.gid) == (before.mode, before.uid, before.gid)
        assert before is None or before.kind != "symlink"
    assert layer(write)[0] == tar
