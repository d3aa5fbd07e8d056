from __future__ import annotations

import io

import pytest

from stackbuild.errors import BuildError
from stackbuild.layers.tree import Entry, FileTree
from stackbuild.layers.venv import VENV, VenvLayout, VenvMaker
from tests.layers.tars import MERGED_USR, members
from tests.layers.wheel_files import PYTHON


def test_the_skeleton_is_what_the_venv_module_makes() -> None:
    sink = io.BytesIO()
    maker = VenvMaker(PYTHON, MERGED_USR.lineage(VENV))
    maker.make(sink, MERGED_USR)
    found = members(sink.getvalue())
    links = {name: member.linkname for name, (member, _) in found.items() if member.issym()}
    assert links == {
        "opt/venv/bin/python": "/usr/bin/python3.11",
        "opt/venv/bin/python3": "python",
        "opt/venv/bin/python3.11": "python",
        "opt/venv/lib64": "lib",
    }
    assert found["opt/venv/pyvenv.cfg"][1].decode().splitlines() == [
        "home = /usr/bin",
        "include-system-site-packages = false",
        "version = 3.11.2",
        "executable = /usr/bin/python3.11",
    ]
    assert found[VenvLayout.of(PYTHON).site_packages][0].isdir()
    assert found["opt/venv/include"][0].isdir()


def test_a_base_that_has_an_environment_of_its_own_is_refused_by_name() -> None:
    tree = MERGED_USR.with_layer(
        {
            "opt/venv": Entry("dir", 0o755),
            "opt/venv/bin": Entry("dir", 0o755),
            "opt/venv/bin/python": Entry("symlink", 0o777, linkname="/usr/bin/python3.9"),
        }
    )
    with pytest.raises(BuildError, match="/opt/venv/bin/python is a symbolic link"):
        VenvMaker(PYTHON, tree.lineage(VENV)).make(io.BytesIO(), tree)


def test_an_opt_that_is_a_link_is_followed_and_changes_the_key() -> None:
    tree = FileTree({"opt": Entry("symlink", 0o777, linkname="data/opt"), "data": Entry("dir", 0o755)})
    maker = VenvMaker(PYTHON, tree.lineage(VENV))
    sink = io.BytesIO()
    maker.make(sink, tree)
    assert "data/opt/venv/pyvenv.cfg" in members(sink.getvalue())
    assert maker.key() != VenvMaker(PYTHON, MERGED_USR.lineage(VENV)).key()
