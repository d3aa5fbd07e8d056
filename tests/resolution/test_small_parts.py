"""Operating system facts, candidates of debs, Python's version, timestamps, mmdebstrap's answer."""

from __future__ import annotations

import pytest

from stackbuild.resolution.bases.mmdebstrap import parse_answer, without_host_options
from stackbuild.resolution.debs.deb_files import deb_candidates
from stackbuild.resolution.debs.locking import DebRequest, python_lock
from stackbuild.resolution.os_facts import glibc_version, parse_os_release
from stackbuild.resolution.timestamps import newest
from tests.lock.examples import deb


def test_os_release_values_are_unquoted() -> None:
    text = '# a comment\nID=ubuntu\nVERSION_ID="24.04"\nNAME=\'U b\'\nBROKEN="x\nEMPTY=\n'
    assert parse_os_release(text) == {"ID": "ubuntu", "VERSION_ID": "24.04", "NAME": "U b", "EMPTY": ""}


def test_glibc_is_read_from_its_banner() -> None:
    banner = b"\0GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\nCopyright"
    assert glibc_version(banner) == "2.36"
    assert glibc_version(b"musl libc") == ""


def test_candidates_end_with_the_snapshot_archive() -> None:
    found = deb_candidates(
        deb("libstdc++6", "12.2.0-14~x"),
        {"debian": ("http://mirror.example/debian",)},
        created="2026-01-02T03:04:05Z",
        snapshot="https://snapshot.example",
    )
    path = "pool/main/l/libstdc++6/libstdc++6_12.2.0-14~x_amd64.deb"
    assert found == (
        f"http://mirror.example/debian/{path}",
        f"https://snapshot.example/archive/debian/20260102T030405Z/{path}",
    )


def test_a_snapshot_archive_may_have_another_layout() -> None:
    (url,) = deb_candidates(
        deb("a", repository="ubuntu"),
        {},
        created="2026-01-02T03:04:05Z",
        snapshot="https://snapshot.example/{repository}/{timestamp}/{path}",
    )
    assert url == "https://snapshot.example/ubuntu/20260102T030405Z/pool/main/a/a/a_1.0-1_amd64.deb"


@pytest.mark.parametrize(
    ("series", "version", "expected"),
    [
        ("3.11", "3.11.2-6+deb12u6", "3.11.2"),
        ("3.12", "3.12.3-1ubuntu0.8", "3.12.3"),
        ("3.13", "3.13.0~rc1-1", "3.13.0rc1"),
        ("3.10", "1:3.10.12+dfsg-1", "3.10.12"),
    ],
)
def test_python_is_what_its_package_holds(series: str, version: str, expected: str) -> None:
    python = python_lock(series, version)
    assert python.version == expected
    assert python.executable == f"/usr/bin/python{series}"
    assert python.tag == f"cp{series.replace('.', '')}"


def test_apt_is_asked_for_the_series_package() -> None:
    assert DebRequest(("libgomp1",), "3.12").names == ("python3.12", "libgomp1")
    assert DebRequest().names == ()


def test_newest_timestamp_counts_in_utc_and_whole_seconds() -> None:
    moments = [
        "2026-01-01T00:00:00.123456789Z",
        None,
        "",
        "2026-01-01T02:00:00+03:00",
        "2025-12-31T23:59:59Z",
    ]
    assert newest(moments) == "2026-01-01T00:00:00Z"


def test_mmdebstraps_answer_is_found_among_its_own_lines() -> None:
    output = """\
I: automatically chosen mode: root
I: running --setup-hook in shell: sh -c '
echo stackbuild-sources one-line; cat "$1"/etc/apt/sources.list
stackbuild-sources one-line
deb [signed-by="/usr/share/keyrings/debian.gpg"] http://mirror.example/debian bookworm main
stackbuild-sources deb822
Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
stackbuild-sources end
E: command failed
"""
    found = parse_answer(output)
    assert [repository.uri for repository in found] == [
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
    ]
    assert [repository.line() for repository in without_host_options(found)] == [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian-security bookworm-security main",
    ]
