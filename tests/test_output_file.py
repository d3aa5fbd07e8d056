"""Files that somebody named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.output_file import write_file


@pytest.fixture
def umask() -> Iterator[int]:
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_a_file_has_the_permissions_that_open_gives(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for the umask sets it: two threads that both did left the process without one."""
    monkeypatch.setattr(os, "umask", None)
    write_file(tmp_path / "folder" / "file", b"content")
    assert (tmp_path / "folder" / "file").read_bytes() == b"content"
    assert (tmp_path / "folder" / "file").stat().st_mode & 0o777 == 0o666 & ~umask
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["file"]
    monkeypatch.undo()
