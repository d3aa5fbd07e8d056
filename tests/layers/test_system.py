from __future__ import annotations

import io

import pytest

from stackbuild.errors import BuildError
from stackbuild.layers.system import system_maker
from stackbuild.layers.tree import Entry, FileTree
from stackbuild.spec.model import ImageSpec, UserSpec
from tests.layers.tars import MERGED_USR, members

APP = UserSpec(name="app", uid=1001)


def made(image: ImageSpec, tree: FileTree = MERGED_USR) -> dict[str, tuple[int, int, int, bytes]]:
    maker = system_maker(image, tree)
    assert maker is not None
    sink = io.BytesIO()
    maker.make(sink, tree)
    return {
        name: (member.mode, member.uid, member.gid, data)
        for name, (member, data) in members(sink.getvalue()).items()
    }


def test_user_home_workdir_and_volumes_come_from_the_spec() -> None:
    found = made(ImageSpec(user=APP, workdir="/srv/app", volumes=("/cache/hf", "/tmp")))
    assert found["etc/passwd"][3].endswith(b"\napp:x:1001:1001::/home/app:/bin/sh\n")
    assert found["etc/group"][3].endswith(b"\napp:x:1001:\n")
    for path in ("home/app", "srv/app", "cache/hf"):
        assert found[path][:3] == (0o755, 1001, 1001)
    for path in ("home", "srv", "cache"):
        assert found[path][:3] == (0o755, 0, 0)
    assert "tmp" not in found  # it exists, so it keeps its mode


def test_account_files_keep_mode_and_owner() -> None:
    tree = MERGED_USR.with_layer({"etc/shadow": Entry("file", 0o640, 0, 42, text="root:*:1::::::\n")})
    assert made(ImageSpec(user=APP), tree)["etc/shadow"][:3] == (0o640, 0, 42)


def test_nothing_to_do_makes_no_layer() -> None:
    assert system_maker(ImageSpec(), MERGED_USR) is None
    assert system_maker(ImageSpec(workdir="/", volumes=("/tmp", "/lib")), MERGED_USR) is None


def test_a_second_layer_on_top_is_not_needed() -> None:
    image = ImageSpec(user=APP, workdir="/srv/app")
    maker = system_maker(image, MERGED_USR)
    assert maker is not None
    tree = MERGED_USR.with_layer(maker.make(io.BytesIO(), MERGED_USR))
    assert system_maker(image, tree) is None


def test_directories_go_through_links_of_the_base() -> None:
    assert "usr/lib/data" in made(ImageSpec(volumes=("/lib/data",)))


def test_a_directory_where_the_base_has_a_file_is_refused() -> None:
    with pytest.raises(BuildError, match="/etc/passwd is a file"):
        made(ImageSpec(workdir="/etc/passwd"))


def test_a_path_that_climbs_is_refused() -> None:
    with pytest.raises(BuildError) as caught:
        system_maker(ImageSpec(workdir="/srv/../etc"), MERGED_USR)
    assert caught.value.code == "path-escape"


def test_the_key_follows_the_bases_own_accounts() -> None:
    image = ImageSpec(user=APP)
    other = MERGED_USR.with_layer({"etc/passwd": Entry("file", 0o644, text="root:x:0:0::/root:/bin/sh\n")})
    keys = [maker.key() for tree in (MERGED_USR, other) if (maker := system_maker(image, tree))]
    assert len(set(keys)) == 2
