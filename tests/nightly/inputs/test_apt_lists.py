"""Reading what a repository lists: compressed, signed, by hash, flat, and while it is being updated."""

from __future__ import annotations

import gzip
import hashlib
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.nightly.inputs_apt_lists import AptLists, ListedDeb
from stackbuild.progress import SilentObserver
from stackbuild.resolution.debs.apt_sources import AptRepository
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RetryPolicy
from stackbuild.store.store import Store
from tests.support.loopback import LoopbackServer, Request, Response

PACKAGES = """\
Package: tool
Version: 1.0-1
Architecture: amd64
Filename: ./pool/tool_1.0-1_amd64.deb
SHA256: {hash}
Description: one
 Package: not-this-one

Package: toolbox
Version: 9
Architecture: amd64
Filename: pool/toolbox.deb
SHA256: {hash}

Package: tool
Version: 1.0-2
Architecture: amd64
Filename: pool/tool_1.0-2_amd64.deb
SHA256: {hash}
""".format(hash="a" * 64)
SIGNED = """\
-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA512

Suite: stable
MD5Sum:
 00000000000000000000000000000000 1 main/binary-amd64/Packages.xz
SHA256:
 {sha256} {size} {path}
-----BEGIN PGP SIGNATURE-----

nobody reads this
-----END PGP SIGNATURE-----
"""


@pytest.fixture
def files() -> dict[str, bytes]:
    packed = lzma.compress(PACKAGES.encode())
    sha256 = hashlib.sha256(packed).hexdigest()
    path = "main/binary-amd64/Packages.xz"
    return {
        "/debian/dists/stable/InRelease": SIGNED.format(sha256=sha256, size=len(packed), path=path).encode(),
        f"/debian/dists/stable/main/binary-amd64/by-hash/SHA256/{sha256}": packed,
    }


@pytest.fixture
def server(files: dict[str, bytes]) -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: _answer(files, request)) as made:
        yield made


def _answer(files: Mapping[str, bytes], request: Request) -> Response:
    return Response(body=files[request.path]) if request.path in files else Response(404)


def read(server: LoopbackServer, root: Path, **changes: object) -> tuple[ListedDeb, ...]:
    repository = AptRepository(f"{server.url}/debian", str(changes.get("suite", "stable")), ("main",))
    http = HttpClient(retry=RetryPolicy(attempts=2, first_delay=0.01), timeout=60)
    lists = AptLists(http, Store(root / "store"), SilentObserver())
    return lists.read(repository, "debian", "amd64", frozenset({"tool", "absent"}))


def test_a_signed_and_compressed_list(server: LoopbackServer, tmp_path: Path) -> None:
    found = read(server, tmp_path)
    assert [(deb.version, deb.path) for deb in found] == [
        ("1.0-1", "pool/tool_1.0-1_amd64.deb"),
        ("1.0-2", "pool/tool_1.0-2_amd64.deb"),
    ]
    assert found[0] == ListedDeb(
        "tool", "1.0-1", "amd64", "debian", "stable", "pool/tool_1.0-1_amd64.deb", "a" * 64
    )


def test_a_list_that_is_as_it_was_comes_from_the_store(server: LoopbackServer, tmp_path: Path) -> None:
    assert read(server, tmp_path) == read(server, tmp_path)
    assert len(server.requested("by-hash")) == 1
    assert len(server.requested("InRelease")) == 2


def test_a_flat_repository_with_release_alone(
    server: LoopbackServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    plain = PACKAGES.encode()
    files["/debian/flat/Release"] = f"SHA256:\n {hashlib.sha256(plain).hexdigest()} 1 Packages\n".encode()
    files["/debian/flat/Packages"] = plain
    assert [deb.version for deb in read(server, tmp_path, suite="flat/")] == ["1.0-1", "1.0-2"]


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("Architectures: all amd64\n", ["1.0-1", "1.0-2"]),
        ("Architectures: all amd64\nNo-Support-for-Architecture-all: Packages\n", []),
        ("Architectures: amd64\n", []),  # as bookworm-security, whose list of "all" is an old one
    ],
)
def test_debs_of_every_architecture_in_a_list_of_their_own(
    field: str, found: list[str], server: LoopbackServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    packed = gzip.compress(PACKAGES.encode())
    path = "main/binary-all/Packages.gz"
    stated = f"{field}SHA256:\n {hashlib.sha256(packed).hexdigest()} {len(packed)} {path}\n"
    files["/debian/dists/stable/InRelease"] = stated.encode()
    files[f"/debian/dists/stable/{path}"] = packed
    assert [deb.version for deb in read(server, tmp_path)] == found


def test_a_list_that_cannot_be_unpacked(
    server: LoopbackServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    broken = b"not xz at all"
    path = "main/binary-amd64/Packages.xz"
    files["/debian/dists/stable/InRelease"] = SIGNED.format(
        sha256=hashlib.sha256(broken).hexdigest(), size=len(broken), path=path
    ).encode()
    files[f"/debian/dists/stable/{path}"] = broken
    with pytest.raises(NotJudgedError, match="cannot be unpacked"):
        read(server, tmp_path)


def test_a_suite_that_is_gone(server: LoopbackServer, tmp_path: Path) -> None:
    with pytest.raises(LockError) as caught:
        read(server, tmp_path, suite="buster")
    assert caught.value.code == "no-such-apt-suite"


def test_a_mirror_in_the_midst_of_an_update_is_not_judged(
    server: LoopbackServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    (path,) = [path for path in files if "by-hash" in path]
    files[path] = b"of another day"
    with pytest.raises(NotJudgedError) as caught:
        read(server, tmp_path)
    assert caught.value.code == "repository-unreachable"
    del files[path]
    with pytest.raises(NotJudgedError) as caught:
        read(server, tmp_path)
    assert "its lists do not fit each other" in caught.value.what
