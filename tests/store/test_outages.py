"""A server that is down is asked no more; one that is up is never taken for such."""

from __future__ import annotations

import pytest

from stackbuild.store.http import HttpClient
from stackbuild.store.outages import Outages
from stackbuild.store.retry import RefusedError, RetryPolicy, TransferError
from tests.support.loopback import LoopbackServer, Misbehaviour, Response

URL = "https://user:secret@index.example:8443/simple/numpy/"


def test_three_failures_in_a_row_and_no_fewer() -> None:
    now = [0.0]
    outages = Outages(clock=lambda: now[0])
    for second in (0.0, 5.0):
        now[0] = second
        outages.failed(URL, "refused")
        outages.failed(URL, "refused")  # under way together, it fails together
    assert outages.down(URL) is None
    outages.answered("https://index.example:8443/simple/other/")
    for second in (10.0, 20.0, 30.0):
        assert outages.down(URL) is None
        now[0] = second
        outages.failed(URL, f"refused at {second:.0f}")
    assert outages.down("https://index.example:8443/files/a.whl") == "refused at 30"
    assert outages.down("https://index.example/") is None
    outages.forget()
    assert outages.down(URL) is None


def test_clients_share_what_they_know_of_a_server() -> None:
    def client() -> HttpClient:
        return HttpClient(retry=RetryPolicy(attempts=2, first_delay=0.01), outages=outages).scoped()

    outages = Outages(apart=0)
    with LoopbackServer(lambda request: Response()) as server:
        server.misbehave("/", Misbehaviour(status=500))
        for _ in range(5):
            with pytest.raises(TransferError) as caught:
                client().read(f"{server.url}/page")
        assert caught.value.reason.startswith("500")
        assert len(server.requests) == 3


def test_nobody_waits_once_a_server_counts_as_down() -> None:
    waits: list[str] = []
    client = HttpClient(retry=RetryPolicy(attempts=5, first_delay=0.01), outages=Outages(apart=0))
    for url in ("http://127.0.0.1:1/", "http://127.0.0.1:1/other"):
        with pytest.raises(TransferError) as caught:
            client.read(url, note=waits.append)
        assert caught.value.given_up
    assert [wait.rpartition("(")[2] for wait in waits] == ["1 of 5)", "2 of 5)"]


@pytest.mark.parametrize("misbehaviour", [Misbehaviour(status=429), Misbehaviour(status=404)])
def test_a_server_that_limits_or_refuses_is_up(misbehaviour: Misbehaviour) -> None:
    outages = Outages(apart=0)
    with LoopbackServer(lambda request: Response()) as server:
        server.misbehave("/", misbehaviour)
        for _ in range(4):
            with pytest.raises((TransferError, RefusedError)):
                HttpClient(retry=RetryPolicy(attempts=1), outages=outages).read(server.url)
        assert len(server.requests) == 4
