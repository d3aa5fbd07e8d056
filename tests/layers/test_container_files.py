"""The tar that carries files into a container."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from stackbuild.layers.container_files import last_lines, tar_stream


def test_files_from_memory_and_disk_arrive_whole(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * 10_000)
    raw = b"".join(tar_stream([("/a/b", b"text"), ("/a/" + "n" * 200, large), ("/empty", b"")]))
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        found = {}
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    assert found == {"a/b": b"text", "a/" + "n" * 200: large.read_bytes(), "empty": b""}


def test_last_lines_pass_blank_ones_by() -> None:
    assert last_lines("a\n\nb\n  \nc\n", 2) == "b\nc"
