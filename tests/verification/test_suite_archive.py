"""The suite's archive: the same bytes each time, and a program that runs."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from stackbuild.verification.suite_archive import suite_archive, suite_sha256, suite_version
from tests.verify_suite.support import events_of, tiny


def test_the_archive_is_the_same_bytes_each_time() -> None:
    first = suite_archive()
    suite_archive.cache_clear()
    assert suite_archive() == first
    assert suite_sha256() == hashlib.sha256(first).hexdigest()


def test_the_archive_holds_source_and_model_and_nothing_of_this_machine() -> None:
    with zipfile.ZipFile(io.BytesIO(suite_archive())) as archive:
        names = archive.namelist()
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o644}
    assert names[0] == "__main__.py"
    assert names[1:] == sorted(names[1:])
    assert "suite/models/reference.onnx" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("make_")]


def test_the_archive_runs(tmp_path: Path) -> None:
    program = tmp_path / "suite.pyz"
    program.write_bytes(suite_archive())
    events = events_of(tmp_path, [tiny("well")], program=program)
    assert events[0]["version"] == suite_version() != ""
    assert [event["outcome"] for event in events if event["event"] == "gate"] == ["measured"]
