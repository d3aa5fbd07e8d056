from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.progress import SilentObserver
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.store.store import Store
from tests.resolution.wheel_locking import HTTP
from tests.support.loopback import LoopbackServer, Misbehaviour, Request, Response
from tests.support.wheels import make_wheel, sha256_of


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel whose METADATA does not lie in its last 64 KiB, and whose directory is longer than that."""
    many = {f"big/{number:05}_{'x' * 60}.py": "" for number in range(1500)}
    return make_wheel(
        tmp_path / "w", "big", "1.0", requires=["leaf"], files={"big/data.bin": os.urandom(300_000), **many}
    )


@pytest.fixture
def server(wheel: Path) -> Iterator[LoopbackServer]:
    def answer(request: Request) -> Response:
        if request.path == "/w.whl":
            return Response(body=wheel.read_bytes())
        return Response(body=b"beside") if request.path == "/with.whl.metadata" else Response(404)

    with LoopbackServer(answer) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def reader(store: Store) -> MetadataReader:
    return MetadataReader(http=HTTP, store=store, observer=SilentObserver())


def test_byte_ranges_bring_it(server: LoopbackServer, wheel: Path, store: Store) -> None:
    file = IndexFile(wheel.name, f"{server.url}/w.whl", sha256_of(wheel))
    assert b"Requires-Dist: leaf" in reader(store).read("default", file)
    assert all("Range" in request.headers for request in server.requests)
    asked = len(server.requests)
    assert b"Requires-Dist: leaf" in reader(store).read("default", file)  # the store knows it by now
    assert len(server.requests) == asked


def test_what_lies_beside_is_taken(server: LoopbackServer, store: Store) -> None:
    file = IndexFile("with-1.0-py3-none-any.whl", f"{server.url}/with.whl", core_metadata=True)
    assert reader(store).read("default", file) == b"beside"


def test_announced_beside_and_not_there(server: LoopbackServer, wheel: Path, store: Store) -> None:
    file = IndexFile(wheel.name, f"{server.url}/w.whl", core_metadata=True)
    assert b"Name: big" in reader(store).read("pytorch-cpu", file)


def test_a_server_without_ranges_gives_the_whole_wheel(wheel: Path, store: Store) -> None:
    class Plain(LoopbackServer):
        def _respond(self, request: Request) -> tuple[Response, int | None]:
            return Response(200, wheel.read_bytes()), None

    with Plain(lambda request: Response()) as server:
        file = IndexFile(wheel.name, f"{server.url}/w.whl", sha256_of(wheel))
        assert b"Name: big" in reader(store).read("default", file)
    assert store.blob(sha256_of(wheel))


def test_no_wheel(server: LoopbackServer, store: Store, tmp_path: Path) -> None:
    server.misbehave("/w.whl", Misbehaviour(replace=b"no zip at all"))
    with pytest.raises(LockError) as caught:
        reader(store).read("default", IndexFile("w-1.0-py3-none-any.whl", f"{server.url}/w.whl"))
    assert caught.value.code == "wheel-invalid"
    with zipfile.ZipFile(tmp_path / "e.whl", "w"):
        pass
    with pytest.raises(LockError) as caught:
        reader(store).read("default", IndexFile("e-1.0-py3-none-any.whl", str(tmp_path / "e.whl")))
    assert caught.value.code == "wheel-invalid"


def test_down(store: Store) -> None:
    with pytest.raises(NotJudgedError) as caught:
        reader(store).read("default", IndexFile("w-1.0-py3-none-any.whl", "http://127.0.0.1:1/w.whl"))
    assert caught.value.code == "index-unreachable"
