"""A file's size is asked for with one byte, whatever the server makes of that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.nightly.inputs_probe import Probe
from stackbuild.progress import SilentObserver
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RefusedError, RetryPolicy, TransferError
from tests.support.loopback import LoopbackServer, Misbehaviour, Response

CONTENT = b"0123456789"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: Response(body=b"" if "empty" in request.path else CONTENT)) as made:
        yield made


@pytest.fixture
def probe() -> Probe:
    return Probe(HttpClient(retry=RetryPolicy(attempts=2, first_delay=0.01), timeout=60), SilentObserver())


def test_one_byte_is_asked_for(server: LoopbackServer, probe: Probe) -> None:
    assert probe.size(f"{server.url}/a") == len(CONTENT)
    (request,) = server.requested("/a")
    assert request.headers["Range"] == "bytes=0-0"


def test_an_empty_file_has_no_first_byte(server: LoopbackServer, probe: Probe) -> None:
    assert probe.size(f"{server.url}/empty") == 0


def test_a_server_that_sends_all_of_it(server: LoopbackServer, probe: Probe) -> None:
    server.misbehave("/a", Misbehaviour(status=200, body=CONTENT))
    assert probe.size(f"{server.url}/a") == len(CONTENT)


@pytest.mark.parametrize("status", [404, 410])
def test_gone(status: int, server: LoopbackServer, probe: Probe) -> None:
    server.misbehave("/a", Misbehaviour(status=status))
    assert probe.size(f"{server.url}/a") is None


def test_forbidden_is_not_gone(server: LoopbackServer, probe: Probe) -> None:
    server.misbehave("/a", Misbehaviour(status=403))
    with pytest.raises(RefusedError):
        probe.size(f"{server.url}/a")


def test_a_server_that_fails_is_tried_again_and_then_left_alone(server: LoopbackServer, probe: Probe) -> None:
    server.misbehave("/a", Misbehaviour(status=503, times=1))
    assert probe.size(f"{server.url}/a") == len(CONTENT)
    server.misbehave("/", Misbehaviour(status=500))
    for number in range(9):
        with pytest.raises(TransferError):
            probe.size(f"{server.url}/down{number}")
    assert len(server.requested("/down")) == 3 * 2


def test_a_file_url(tmp_path: Path, probe: Probe) -> None:
    file = tmp_path / "a+b.whl"
    file.write_bytes(CONTENT)
    assert probe.size(file.as_uri()) == len(CONTENT)
    file.unlink()
    assert probe.size(file.as_uri()) is None
