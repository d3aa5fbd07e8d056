"""Apt's sources files."""

from __future__ import annotations

import pytest

from stackbuild.resolution.debs.apt_sources import (
    AptRepository,
    at_mirrors,
    parse_sources,
    replaced_uris,
    repository_name,
    repository_uris,
)

ONE_LINE = """\
# deb http://old.example/debian buster main
deb [signed-by=/usr/share/keyrings/a.gpg arch=amd64] http://mirror.example/debian/ bookworm main contrib # why
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/repos/x86_64 /
"""
DEB822 = """\
Types: deb deb-src
URIs: http://mirror.example/ubuntu/
Suites: noble noble-updates
Components: main universe
Signed-By: /usr/share/keyrings/ubuntu.gpg

# Enabled: commented
Types: deb
Enabled: no
URIs: http://mirror.example/off
Suites: noble
Components: main

Types: deb
URIs: http://mirror.example/flat
Suites: ./
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----
"""


def test_one_line_sources() -> None:
    assert parse_sources(ONE_LINE, deb822=False) == (
        AptRepository(
            "http://mirror.example/debian",
            "bookworm",
            ("main", "contrib"),
            ("signed-by=/usr/share/keyrings/a.gpg", "arch=amd64"),
        ),
        AptRepository("http://mirror.example/repos/x86_64", "/"),
    )


def test_deb822_sources() -> None:
    signed = ("signed-by=/usr/share/keyrings/ubuntu.gpg",)
    assert parse_sources(DEB822, deb822=True) == (
        AptRepository("http://mirror.example/ubuntu", "noble", ("main", "universe"), signed),
        AptRepository("http://mirror.example/ubuntu", "noble-updates", ("main", "universe"), signed),
        AptRepository("http://mirror.example/flat", "./"),
    )


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("http://mirror.example/debian/", "debian"),
        ("http://mirror.example/a/debian-security", "debian-security"),
        ("http://mirror.example", "mirror.example"),
    ],
)
def test_name_is_the_last_part_of_the_path(uri: str, name: str) -> None:
    assert repository_name(uri) == name


def test_mirrors_replace_uris_and_nothing_else() -> None:
    mirrors = {"debian": "http://127.0.0.1:1/mirror/"}
    changed = replaced_uris(ONE_LINE, deb822=False, mirrors=mirrors)
    (first, flat) = parse_sources(changed, deb822=False)
    assert first.uri == "http://127.0.0.1:1/mirror"
    assert first.options == ("signed-by=/usr/share/keyrings/a.gpg", "arch=amd64")
    assert flat.uri == "http://mirror.example/repos/x86_64"
    assert changed.splitlines()[0] == ONE_LINE.splitlines()[0]


def test_mirrors_replace_uris_in_deb822() -> None:
    changed = replaced_uris(DEB822, deb822=True, mirrors={"ubuntu": "http://127.0.0.1:1/u"})
    uris = {repository.uri for repository in parse_sources(changed, deb822=True)}
    assert uris == {"http://127.0.0.1:1/u", "http://mirror.example/flat"}
    assert "-----BEGIN PGP PUBLIC KEY BLOCK-----" in changed


def test_a_mirror_keeps_the_suite() -> None:
    (mirrored,) = at_mirrors(
        [AptRepository("http://a.example/debian", "bookworm", ("main",))], {"debian": "http://b/d/"}
    )
    assert mirrored.line() == "deb http://b/d bookworm main"


def test_the_sites_mirror_is_tried_before_the_bases_own() -> None:
    uris = repository_uris(
        [
            AptRepository("http://a.example/debian", "bookworm", ("main",)),
            AptRepository("http://a.example/debian", "bookworm-updates", ("main",)),
            AptRepository("http://b.example/debian-security", "bookworm-security", ("main",)),
        ],
        {"debian": "http://127.0.0.1:1/debian/"},
    )
    assert uris == {
        "debian": ("http://127.0.0.1:1/debian", "http://a.example/debian"),
        "debian-security": ("http://b.example/debian-security",),
    }
