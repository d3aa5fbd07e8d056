"""Re-tarring a root file system, and what mmdebstrap's failures mean."""

from __future__ import annotations

import io
import os
import random
import tarfile

import pytest

from stackbuild.errors import BuildError, NotJudgedError
from stackbuild.layers.bootstrap import failure_of, retar_rootfs

SOURCES = "deb https://mirror.example.org/debian bookworm main\n"


def _member(
    name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, mode: int = 0o644, link: str = ""
) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.mode, member.linkname = kind, size, mode, link
    return member


ROOT = [
    _member("./", tarfile.DIRTYPE, mode=0o755),
    _member("./dev/", tarfile.DIRTYPE, mode=0o755),
    _member("./dev/null", tarfile.CHRTYPE, mode=0o666),
    _member("./etc/", tarfile.DIRTYPE, mode=0o755),
    _member("./etc/apt/", tarfile.DIRTYPE, mode=0o755),
    _member("./etc/apt/apt.conf.d/99mmdebstrap", size=3),
    _member("./etc/apt/sources.list", size=3),
    _member("./etc/apt/sources.list.d/0000mm.sources", size=3),
    _member("./etc/dpkg/dpkg.cfg.d/99mmdebstrap", size=3),
    _member("./etc/machine-id", size=3),
    _member("./etc/resolv.conf", size=3),
    _member("./tmp/", tarfile.DIRTYPE, mode=0o1777),
    _member("./usr/bin/z-first-in-the-tar", size=3, mode=0o755),
    _member("./usr/bin/a-link", tarfile.LNKTYPE, link="./usr/bin/z-first-in-the-tar"),
    _member("./var/log/dpkg.log", size=3),
]


def _retar(members: list[tarfile.TarInfo]) -> bytes:
    raw, sink = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"abc"))
    raw.seek(0)
    retar_rootfs(raw, SOURCES, sink)
    return sink.getvalue()


def test_only_what_belongs_to_an_image_is_kept() -> None:
    with tarfile.open(fileobj=io.BytesIO(_retar(ROOT))) as archive:
        members = {member.name: member for member in archive}
        sources = archive.extractfile("etc/apt/sources.list")
        assert sources is not None
        assert sources.read().decode() == SOURCES
    assert list(members) == [
        "dev",
        "etc",
        "etc/apt",
        "etc/apt/sources.list",
        "etc/dpkg",
        "etc/dpkg/dpkg.cfg.d",
        "etc/dpkg/dpkg.cfg.d/stackbuild",
        "etc/machine-id",
        "tmp",
        "usr",
        "usr/bin",
        "usr/bin/a-link",
        "usr/bin/z-first-in-the-tar",
    ]
    assert members["etc/machine-id"].size == 0
    assert members["tmp"].mode == 0o1777


def test_a_hard_link_that_sorts_before_its_file_carries_the_content() -> None:
    with tarfile.open(fileobj=io.BytesIO(_retar(ROOT))) as archive:
        first = archive.getmember("usr/bin/a-link")
        assert (first.isreg(), first.size, first.mode) == (True, 3, 0o755)
        assert archive.getmember("usr/bin/z-first-in-the-tar").linkname == "usr/bin/a-link"


def test_the_order_of_independent_entries_in_the_input_has_no_say() -> None:
    files = [_member(f"./etc/{name}", size=3) for name in ("a", "b", "c", "d")]
    shuffled = random.Random(1).sample(files, len(files))
    assert _retar(files) == _retar(shuffled)


def test_a_full_disk_is_told_as_that() -> None:
    error = failure_of(
        "I: extracting\ntar: x: Cannot write: No space left on device\nE: tar failed", "bookworm"
    )
    assert isinstance(error, BuildError)
    assert error.code == "disk-full"


def test_a_user_without_namespaces_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    error = failure_of("E: invalid line in /etc/subuid\nnewuidmap failed", "bookworm")
    assert isinstance(error, NotJudgedError)
    assert error.code == "bootstrap-not-permitted"
    assert "uidmap" in error.do


def test_a_package_that_fails_is_named_with_what_it_said() -> None:
    error = failure_of(
        "Setting up x (1) ...\nno licence server\ndpkg: error processing package x (--configure):\n"
        " installed x package post-installation script subprocess returned error exit status 7\n"
        + "Setting up another (1) ...\n"
        * 40,
        "bookworm",
    )
    assert error.code == "bootstrap-failed"
    assert "package x " in error.what
    assert error.detail.splitlines() == [
        "Setting up x (1) ...",
        "no licence server",
        "dpkg: error processing package x (--configure):",
        " installed x package post-installation script subprocess returned error exit status 7",
    ]
