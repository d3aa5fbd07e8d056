from __future__ import annotations

import io
import os
import socket
from pathlib import Path

import pytest

from stackbuild.errors import BuildError, SpecError
from stackbuild.layers.files import files_maker, hash_of, scan_files
from stackbuild.layers.tree import Entry, FileTree
from stackbuild.spec.model import FileSpec
from tests.layers.tars import MERGED_USR, members


def app(folder: Path) -> Path:
    (folder / "app" / "sub").mkdir(parents=True)
    (folder / "app" / "serve.py").write_text("print(1)\n")
    (folder / "app" / "sub" / "run").write_text("#!/bin/sh\n")
    (folder / "app" / "sub" / "run").chmod(0o700)
    (folder / "app" / ".hidden").write_text("")
    (folder / "app" / "link").symlink_to("sub/run")
    return folder


def made(folder: Path, *files: FileSpec, tree: FileTree = MERGED_USR) -> dict[str, tuple[str, bytes]]:
    maker = files_maker(scan_files(files, folder), tree)
    assert maker is not None
    sink = io.BytesIO()
    maker.make(sink, tree)
    return {
        name: (f"{member.mode:o} {member.uid}:{member.gid} {member.linkname}".strip(), data)
        for name, (member, data) in members(sink.getvalue()).items()
    }


def test_a_folder_is_copied_whole_with_the_executable_bit(tmp_path: Path) -> None:
    found = made(app(tmp_path), FileSpec(from_="app/", to="/srv/app", owner="7:8"))
    assert found == {
        "srv": ("755 0:0", b""),
        "srv/app": ("755 7:8", b""),
        "srv/app/.hidden": ("644 7:8", b""),
        "srv/app/link": ("777 7:8 sub/run", b""),
        "srv/app/serve.py": ("644 7:8", b"print(1)\n"),
        "srv/app/sub": ("755 7:8", b""),
        "srv/app/sub/run": ("755 7:8", b"#!/bin/sh\n"),
    }


@pytest.mark.parametrize("to", ["/srv/serve.py", "/srv/"])
def test_a_file_is_copied_to_its_path_or_into_a_folder(tmp_path: Path, to: str) -> None:
    found = made(app(tmp_path), FileSpec(from_="app/serve.py", to=to, mode="0600"))
    assert found["srv/serve.py"] == ("600 0:0", b"print(1)\n")


def test_files_land_through_the_links_of_the_base(tmp_path: Path) -> None:
    assert "usr/lib/serve.py" in made(app(tmp_path), FileSpec(from_="app/serve.py", to="/lib/serve.py"))


def test_existing_directories_keep_their_mode(tmp_path: Path) -> None:
    found = made(app(tmp_path), FileSpec(from_="app", to="/tmp", owner="7"))
    assert found["tmp"][0] == "1777 0:0"


def test_an_owner_is_found_in_the_images_passwd(tmp_path: Path) -> None:
    passwd = Entry("file", 0o644, text="app:x:1001:1002::/:/bin/sh\n")
    tree = MERGED_USR.with_layer({"etc/passwd": passwd})
    assert made(app(tmp_path), FileSpec(from_="app", to="/a", owner="app"), tree=tree)["a"][0] == (
        "755 1001:1002"
    )
    with pytest.raises(BuildError, match="no user named 'other'"):
        made(app(tmp_path / "again"), FileSpec(from_="app", to="/a", owner="other"), tree=tree)


def test_the_hash_covers_content_names_modes_and_owners(tmp_path: Path) -> None:
    folder = app(tmp_path)

    def now(**changes: str) -> str:
        return hash_of(scan_files([FileSpec(from_="app", to="/a").model_copy(update=changes)], folder))

    first = now()
    assert now() == first
    os.utime(folder / "app" / "serve.py", (1, 1))
    assert now() == first  # times do not count
    seen = {first, now(to="/b"), now(owner="app"), now(mode="0600")}
    (folder / "app" / "serve.py").write_text("print(2)\n")
    seen.add(now())
    (folder / "app" / "serve.py").chmod(0o755)
    seen.add(now())
    (folder / "app" / "serve.py").rename(folder / "app" / "other.py")
    seen.add(now())
    assert len(seen) == 7
    assert hash_of(()) == ""


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "sub/../../outside", "trick/../.."])
def test_a_link_that_leaves_its_folder_is_refused(tmp_path: Path, target: str) -> None:
    folder = app(tmp_path)
    (folder / "outside").write_text("secret")
    (folder / "app" / "trick").symlink_to(".")
    (folder / "app" / "evil").symlink_to(target)
    with pytest.raises(BuildError) as caught:
        scan_files([FileSpec(from_="app", to="/a")], folder)
    assert caught.value.code == "file-refused"
    assert "evil" in str(caught.value)


def test_sockets_and_pipes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = app(tmp_path)
    os.mkfifo(folder / "app" / "pipe")
    with pytest.raises(BuildError, match="pipe is neither"):
        scan_files([FileSpec(from_="app", to="/a")], folder)
    (folder / "app" / "pipe").unlink()
    monkeypatch.chdir(folder / "app")  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        with pytest.raises(BuildError, match="sock is neither"):
            scan_files([FileSpec(from_="app", to="/a")], folder)


def test_a_whiteout_name_is_refused(tmp_path: Path) -> None:
    folder = app(tmp_path)
    (folder / "app" / ".wh.serve.py").write_text("")
    with pytest.raises(BuildError) as caught:
        scan_files([FileSpec(from_="app", to="/a")], folder)
    assert caught.value.code == "whiteout-refused"


@pytest.mark.parametrize("source", ["nothing", "/etc/hostname"])
def test_a_source_that_is_not_beside_the_spec_is_an_error_of_the_spec(tmp_path: Path, source: str) -> None:
    with pytest.raises(SpecError) as caught:
        scan_files([FileSpec(from_=source, to="/a")], tmp_path)
    assert source in str(caught.value)


def test_a_file_that_changes_after_the_scan_is_noticed(tmp_path: Path) -> None:
    folder = app(tmp_path)
    maker = files_maker(scan_files([FileSpec(from_="app", to="/a")], folder), MERGED_USR)
    assert maker is not None
    for text in ("print(2)\n", "print(22)\n"):
        (folder / "app" / "serve.py").write_text(text)
        with pytest.raises(BuildError) as caught:
            maker.make(io.BytesIO(), MERGED_USR)
        assert caught.value.code == "file-changed"


def test_two_sources_with_one_target_are_both_named(tmp_path: Path) -> None:
    folder = app(tmp_path)
    with pytest.raises(BuildError, match=r"files: app/serve\.py and files: app/sub/run both write /x"):
        made(folder, FileSpec(from_="app/serve.py", to="/x"), FileSpec(from_="app/sub/run", to="/x"))


def test_no_files_make_no_layer_and_the_key_follows_the_place(tmp_path: Path) -> None:
    assert files_maker((), MERGED_USR) is None
    scanned = scan_files([FileSpec(from_="app", to="/opt/a")], app(tmp_path))
    moved = MERGED_USR.with_layer({"opt": Entry("dir", 0o700)})
    keys = [maker.key() for tree in (MERGED_USR, moved) if (maker := files_maker(scanned, tree))]
    assert len(set(keys)) == 2
