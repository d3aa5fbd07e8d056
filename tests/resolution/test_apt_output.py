"""What apt prints, read into values."""

from __future__ import annotations

import pytest

from stackbuild.errors import ExitCode, LockError, NotJudgedError
from stackbuild.resolution.debs.apt_output import (
    Installation,
    install_error,
    locked_debs,
    newest_date,
    parse_simulation,
    parse_uris,
    update_error,
)

SIMULATION = """\
Reading package lists...
The following packages will be REMOVED:
  ca-certificates
Remv ca-certificates [20230311]
Inst libssl3 [3.0.9-1] (3.0.17-1~deb12u2 Debian-Security:12/stable-security [amd64])
Inst libstdc++6:i386 (12.2.0-14 Debian:12.11/stable [i386])
Inst media-types (1:10.0.0 Debian:12.11/stable [all]) []
Conf libssl3 (3.0.17-1~deb12u2 Debian-Security:12/stable-security [amd64])
"""
URIS = """\
W: something
'http://m.example/pool/media-types_10.0.0_all.deb' media-types_1%3a10.0.0_all.deb 26136 MD5Sum:x
'http://m.example/pool/libssl3_3.0.17-1%7edeb12u2_amd64.deb' libssl3_3.0.17-1%7edeb12u2_amd64.deb 2026 MD5Sum:x
"""


def test_simulation_gives_installs_upgrades_and_removals() -> None:
    simulation = parse_simulation(SIMULATION)
    assert simulation.installations == (
        Installation("libssl3", "3.0.17-1~deb12u2", "amd64", replaces="3.0.9-1"),
        Installation("libstdc++6", "12.2.0-14", "i386"),
        Installation("media-types", "1:10.0.0", "all"),
    )
    assert simulation.removals == ("ca-certificates",)


def test_uris_carry_epochs_and_tildes() -> None:
    assert set(parse_uris(URIS)) == {
        ("media-types", "1:10.0.0", "all"),
        ("libssl3", "3.0.17-1~deb12u2", "amd64"),
    }


def _record(repository_path: str, sha256: str) -> str:
    return (
        f"Package: media-types\nVersion: 1:10.0.0\nArchitecture: all\nFilename: {repository_path}\n"
        f"Size: 26136\nSHA256: {sha256}\nDescription: types\n more of it\n"
    )


def test_debs_take_the_record_of_the_repository_that_apt_means() -> None:
    uris = {
        ("media-types", "1:10.0.0", "all"): (
            "http://mirror.example/debian/pool/main/m/media-types/media-types_10.0.0_all.deb"
        )
    }
    records = "W: a warning in between\n" + "\n".join(
        [
            _record("elsewhere/media-types.deb", "b" * 64),
            _record("pool/main/m/media-types/media-types_10.0.0_all.deb", "a" * 64),
        ]
    )
    (deb,) = locked_debs([Installation("media-types", "1:10.0.0", "all")], records, uris, {})
    assert (deb.repository, deb.path, deb.sha256, deb.size) == (
        "debian",
        "pool/main/m/media-types/media-types_10.0.0_all.deb",
        "a" * 64,
        26136,
    )


def test_a_mirror_does_not_name_the_repository() -> None:
    uris = {("media-types", "1:10.0.0", "all"): "http://127.0.0.1:8080/x/pool/m_all.deb"}
    (deb,) = locked_debs(
        [Installation("media-types", "1:10.0.0", "all")],
        _record("pool/m_all.deb", "a" * 64),
        uris,
        {"http://127.0.0.1:8080/x": "debian"},
    )
    assert deb.repository == "debian"


def test_a_flat_repositorys_path_has_no_dot() -> None:
    uris = {("media-types", "1:10.0.0", "all"): "https://mirror.example/repos/ubuntu2404/./m_all.deb"}
    (deb,) = locked_debs(
        [Installation("media-types", "1:10.0.0", "all")], _record("./m_all.deb", "a" * 64), uris, {}
    )
    assert (deb.repository, deb.path) == ("ubuntu2404", "m_all.deb")


def test_lists_without_sha256_are_refused() -> None:
    record = "Package: media-types\nVersion: 1:10.0.0\nArchitecture: all\nFilename: m.deb\nSize: 1\n"
    with pytest.raises(LockError) as caught:
        locked_debs(
            [Installation("media-types", "1:10.0.0", "all")],
            record,
            {("media-types", "1:10.0.0", "all"): "http://mirror.example/debian/m.deb"},
            {},
        )
    assert caught.value.code == "deb-without-hash"


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("E: Unable to locate package libgopm1", "libgopm1"),
        ("E: Package 'libfoo' has no installation candidate", "libfoo"),
        ("E: Version '9' for 'libgomp1' was not found", "libgomp1"),
    ],
)
def test_unknown_packages_are_named(output: str, name: str) -> None:
    error = install_error(output, "base")
    assert error.code == "no-such-deb"
    assert error.exit_code is ExitCode.SPEC_OR_LOCK
    assert name in error.what


def test_contradicting_packages_show_apts_reasons() -> None:
    error = install_error(
        " a : Depends: b but it is not going to be installed\nE: held broken packages", "base"
    )
    assert error.code == "debs-unsolvable"
    assert "a : Depends: b" in error.detail


@pytest.mark.parametrize(
    ("output", "code", "kind"),
    [
        ("W: GPG error: http://x stable InRelease: NO_PUBKEY 0123", "apt-key-mismatch", LockError),
        ("E: The repository 'http://x stable InRelease' is not signed.", "apt-key-mismatch", LockError),
        (
            "E: The repository 'http://x nosuch Release' does not have a Release file.",
            "no-such-apt-suite",
            LockError,
        ),
        (
            "Err:1 http://x stable InRelease\n  Could not connect to x:80 (1.2.3.4). - connect (111)\n"
            "E: The repository 'http://x stable Release' does not have a Release file.",
            "repository-unreachable",
            NotJudgedError,
        ),
        ("E: Temporary failure resolving 'x'", "repository-unreachable", NotJudgedError),
    ],
)
def test_failed_updates_are_told_apart(output: str, code: str, kind: type[Exception]) -> None:
    error = update_error(output, "base")
    assert error.code == code
    assert isinstance(error, kind)


def test_the_newest_release_date_counts() -> None:
    lines = "Date: Sat, 10 Jan 2026 09:44:15 UTC\nDate: Sun, 01 Nov 2026 20:01:02 UTC\nValid-Until: x\n"
    assert newest_date(lines) == "2026-11-01T20:01:02Z"
    assert newest_date("") == ""
