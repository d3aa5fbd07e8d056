"""The flat repository apt installs from."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from stackbuild.errors import BuildError, LockError
from stackbuild.layers.debs_repository import (
    archive_name,
    exact_version,
    packages_index,
    read_control_fields,
)
from tests.support.bookworm_debs import lock_deb
from tests.support.debs import make_deb


def test_an_epoch_is_escaped_in_the_file_name_and_plain_for_apt(tmp_path: Path) -> None:
    deb, _ = lock_deb(make_deb(tmp_path, "tool", "1:2.0-3+b1", architecture="amd64"))
    assert archive_name(deb) == "tool_1%3a2.0-3+b1_amd64.deb"
    assert exact_version(deb) == "tool:amd64=1:2.0-3+b1"


def test_a_package_for_all_architectures_is_asked_for_without_one(tmp_path: Path) -> None:
    deb, _ = lock_deb(make_deb(tmp_path, "data", "1"))
    assert exact_version(deb) == "data=1"


def test_the_index_has_each_debs_fields_with_its_file_size_and_hash(tmp_path: Path) -> None:
    debs = [lock_deb(make_deb(tmp_path, name, "1", control=["Depends: libc6"])) for name in ("a", "b")]
    controls = read_control_fields(debs)
    stanzas = packages_index(zip((deb for deb, _ in debs), controls, strict=True)).split("\n\n")
    assert len(stanzas) == 2
    for (deb, path), stanza in zip(debs, stanzas, strict=True):
        lines = stanza.strip().splitlines()
        assert lines[0] == f"Package: {deb.name}"
        assert "Depends: libc6" in lines
        assert lines[-3:] == [
            f"Filename: ./{path.name}",
            f"Size: {path.stat().st_size}",
            f"SHA256: {deb.sha256}",
        ]


def test_a_file_that_is_no_deb_is_named(tmp_path: Path) -> None:
    deb, path = lock_deb(make_deb(tmp_path, "good", "1"))
    path.write_bytes(b"!<arch>\n")
    with pytest.raises(BuildError, match="good 1 cannot be read") as caught:
        read_control_fields([(deb, path)])
    assert caught.value.code == "deb-unreadable"


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ({"version": "2"}, "the lock calls good 2 for all what is good 1 for all"),
        ({"name": "better"}, "the lock calls better 1 for all what is good 1 for all"),
        ({"architecture": "amd64"}, "the lock calls good 1 for amd64 what is good 1 for all"),
    ],
)
def test_a_lock_that_calls_a_deb_something_else_is_at_fault(
    edited: dict[str, str], told: str, tmp_path: Path
) -> None:
    deb, path = lock_deb(make_deb(tmp_path, "good", "1"))
    with pytest.raises(LockError) as caught:
        read_control_fields([(deb.model_copy(update=edited), path)])
    assert caught.value.code == "lock-invalid"
    assert told in caught.value.what
    assert "Take back the lock" in caught.value.do


def test_an_interrupt_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deb = lock_deb(make_deb(tmp_path, "good", "1"))
    programs, temporary = tmp_path / "bin", tmp_path / "tmp"
    programs.mkdir()
    temporary.mkdir()
    script = programs / "dpkg-deb"
    script.write_text('#!/bin/sh\nmktemp -d "$TMPDIR/dpkg-deb.XXXXXX"\nkill -INT $PPID\nsleep 5\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(KeyboardInterrupt):
        read_control_fields([deb])
    assert list(temporary.iterdir()) == []
