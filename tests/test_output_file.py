"""Files that somebody named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.errors import UsageError
from stackbuild.output_file import require_apart, write_file


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


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    source, link = tmp_path / "image.tar", tmp_path / "link.tar"
    source.write_bytes(b"image")
    link.symlink_to(source)
    (tmp_path / "loop").symlink_to("loop")
    for output in (source, link, tmp_path / "x" / ".." / "image.tar"):
        with pytest.raises(UsageError) as caught:
            require_apart(str(source), None, output)
        assert (caught.value.code, caught.value.where) == ("output-unwritable", str(output))
    require_apart(str(source), tmp_path / "report.json", tmp_path / "sbom.json")
    require_apart("image.tar", tmp_path / "image.tar")  # an image of the engine
    require_apart("nul\0", tmp_path / "loop")


def test_standard_output_stays_what_it_is_where_it_is_a_file(tmp_path: Path) -> None:
    """A file took the place of the link that all programs of the machine write to."""
    with (tmp_path / "out").open("wb") as stream:
        place = Path(f"/proc/self/fd/{stream.fileno()}")
        write_file(place, b"content")
        assert place.is_symlink()
    assert (tmp_path / "out").read_bytes() == b"content"


def test_two_results_go_into_two_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="another result goes there"):
        require_apart("image", tmp_path / "one", tmp_path / "one")
    require_apart("image", Path("-"), Path("-"))
    require_apart("image", Path("/dev/stdout"), Path("/dev/stdout"))
