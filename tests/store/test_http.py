from __future__ import annotations

import ssl
import subprocess
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from time import time

import pytest

from stackbuild.errors import InterruptedRunError, UsageError
from stackbuild.store.http import HttpClient
from stackbuild.store.outages import Outages
from stackbuild.store.retry import RefusedError, RetryPolicy, TransferError, next_step
from stackbuild.store.retry_after import retry_after_seconds
from tests.support.loopback import LoopbackServer, Misbehaviour, Response

ONCE = RetryPolicy(attempts=1)


def test_delays_double_and_are_bounded() -> None:
    policy = RetryPolicy(first_delay=1, longest_delay=10)
    for attempt, least in ((1, 1), (2, 2), (3, 4)):
        assert least <= policy.delay(attempt) <= least * 1.25
    assert policy.delay(9) == 10
    assert policy.delay(1, retry_after=3) == 3
    assert policy.delay(1, retry_after=3600) == 10


def test_a_server_that_limits_for_longer_than_anyone_waits_is_not_waited_for() -> None:
    with LoopbackServer(lambda request: Response()) as server:
        server.misbehave("/", Misbehaviour(status=429, headers={"Retry-After": "100000"}))
        with pytest.raises(TransferError) as caught:
            HttpClient(retry=RetryPolicy(attempts=5, longest_delay=20)).read(server.url)
        assert caught.value.limiting
        assert len(server.requests) == 1
    policy = RetryPolicy(attempts=5, longest_delay=20)
    assert not policy.is_over(1, TransferError("busy", retry_after=75))  # the last try comes after 80 s
    assert policy.is_over(1, TransferError("busy", retry_after=85))
    assert policy.is_over(5, TransferError("busy"))


def test_retry_after_as_a_date() -> None:
    with LoopbackServer(lambda request: Response()) as server:
        headers = {"Retry-After": formatdate(time() + 3000, usegmt=True)}
        server.misbehave("/", Misbehaviour(status=503, headers=headers))
        with pytest.raises(TransferError) as caught:
            HttpClient(retry=ONCE).open(server.url)
    assert caught.value.limiting
    assert caught.value.retry_after is not None
    assert 2000 < caught.value.retry_after <= 3000


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("3", 3), (" 0 ", 0), ("Mon, 01 Jan 2001 00:00:00 GMT", 0), ("", None), ("soon", None)],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_seconds(value) == seconds


def test_an_answer_that_comes_while_the_client_is_stopped_is_let_go() -> None:
    """Nobody would end the reading of it."""
    clients: list[HttpClient] = []

    class Stopping(Outages):
        def answered(self, url: str) -> None:
            clients[0].stop()

    clients.append(HttpClient(outages=Stopping()))
    with LoopbackServer(lambda request: Response(body=b"x")) as server, pytest.raises(InterruptedRunError):
        clients[0].open(server.url)


@pytest.mark.parametrize("status", [401, 403, 404, 410, 451])
def test_a_refusal_is_final(status: int) -> None:
    with LoopbackServer(lambda request: Response(status)) as server:
        with pytest.raises(RefusedError) as caught:
            HttpClient(retry=RetryPolicy(attempts=3)).read(server.url)
        assert (caught.value.status, len(server.requests)) == (status, 1)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackServer(lambda request: Response(body=b"through " + request.path.encode())) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        answer = HttpClient(retry=ONCE).read("http://index.example/simple/")
    assert answer.body == b"through http://index.example/simple/"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in one file."""
    path = tmp_path / "site.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=site", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(path), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run(command, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + (tmp_path / "certificate.pem").read_bytes())
    return path


def test_the_ca_bundle_decides(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    url = f"https://127.0.0.1:{server.server_address[1]}/"
    try:
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(TransferError, match="certificate") as caught:
            HttpClient(retry=RetryPolicy(attempts=9, first_delay=30)).read(url)  # not tried again
        assert "ca-bundle" in next_step(caught.value, "it")
        assert HttpClient(certificate, retry=ONCE).read(url).body == b"ok"
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            monkeypatch.setenv(name, str(certificate))
            assert HttpClient(retry=ONCE).read(url).body == b"ok"
            monkeypatch.delenv(name)
    finally:
        server.shutdown()
        server.server_close()


def test_a_ca_bundle_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="CA bundle"):
        HttpClient(tmp_path / "none.pem")
