"""The build context as a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stackbuild.errors import UsageError
from stackbuild.render.context import ContextEntry, write_context

DOCKERFILE = ContextEntry("Dockerfile", b"# Rendered by stackbuild\n")


def test_a_context_takes_the_place_of_an_earlier_one_alone(tmp_path: Path) -> None:
    folder = tmp_path / "context"
    write_context([DOCKERFILE, ContextEntry("old", b"x")], folder)
    write_context([DOCKERFILE, ContextEntry("bin/run", b"x", 0o755)], folder)
    assert sorted(path.name for path in folder.iterdir()) == ["Dockerfile", "bin"]
    assert (folder / "bin/run").stat().st_mode & 0o777 == 0o755
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x")
    with pytest.raises(UsageError) as caught:
        write_context([DOCKERFILE], tmp_path / "mine")
    assert caught.value.code == "context-folder-taken"


def test_who_renders_to_the_same_place_is_left_alone(tmp_path: Path) -> None:
    """Processes of several containers may have one number, and write to one shared folder."""
    another = tmp_path / f".context.{os.getpid()}"
    another.mkdir()
    (another / "Dockerfile").write_text("half")
    write_context([DOCKERFILE], tmp_path / "context")
    assert (tmp_path / "context" / "Dockerfile").read_bytes() == DOCKERFILE.content
    assert (another / "Dockerfile").read_text() == "half"
    assert sorted(path.name for path in tmp_path.iterdir()) == [another.name, "context"]
