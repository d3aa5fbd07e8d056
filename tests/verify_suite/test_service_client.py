"""The client that asks a service on its own loopback, against a real server."""

from __future__ import annotations

import base64
import http.server
import importlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        # Ready at the third time of asking.
        type(self).asked += 1
        self._answer(503 if type(self).asked < 3 else 200, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(500 if self.path == "/broken" else 200, body[::-1])

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests read the client's answer."""


@pytest.fixture
def port() -> Iterator[int]:
    Handler.asked = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_it_waits_replays_and_counts(port: int, tmp_path: Path) -> None:
    asked = _asked(tmp_path, port)
    assert asked["ready"]
    assert Handler.asked == 3
    assert (asked["status"], base64.b64decode(asked["answer"])) == (200, b"cba")
    assert (asked["requests"], asked["failures"]) == (12, [])
    assert 0 < asked["latency"]["p50"] <= asked["latency"]["p95"] <= asked["latency"]["max"]


def test_answers_that_are_errors_are_counted_as_failures(port: int, tmp_path: Path) -> None:
    asked = _asked(tmp_path, port, path="/broken")
    assert asked["status"] == 500
    assert asked["failures"] == ["status 500"] * 12
    assert asked["latency"] is None


def test_a_service_that_is_not_there_is_told_with_the_last_reason(tmp_path: Path) -> None:
    asked = _asked(tmp_path, 1, ready_within=0.3)
    assert not asked["ready"]
    assert "ConnectionRefusedError" in asked["last"]


def _asked(folder: Path, port: int, **changes: Any) -> dict[str, Any]:
    (folder / "request").write_bytes(b"abc")
    plan = {
        "port": port,
        "ready": "/health",
        "ready_within": 10,
        "method": "POST",
        "path": "/predict",
        "headers": {},
        "requests": 12,
        "concurrency": 3,
        "request_file": str(folder / "request"),
        **changes,
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    client: Any = importlib.import_module("suite.service_client")
    result: dict[str, Any] = client.ask(folder / "plan.json")
    return result
