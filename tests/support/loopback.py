"""An HTTP server on a free loopback port that can be told to misbehave."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Response:
    """An answer: status, headers and body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What a client asked for."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass
class Misbehaviour:
    """How the server answers requests whose path matches, instead of answering well.

    Args:
        status: Answer with this status and nothing else (404, 429, 500, 503 …).
        headers: Headers of that answer, for example ``{"Retry-After": "1"}``.
        body: Body of that answer.
        replace: Answer 200 with these bytes in place of the right ones.
        cut_after: Announce the whole length, close the connection after this many bytes.
        delay: Seconds to wait before answering.
        times: How many requests it hits; ``None``: all.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    replace: bytes | None = None
    cut_after: int | None = None
    delay: float = 0.0
    times: int | None = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a connection that finds no place in the queue is tried again after a second

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away, which tests have them do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class LoopbackServer:
    """Serves ``answer(request)``; a context manager. ``requests`` is the log of what was asked."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self._answer = answer
        self._misbehaviours: list[tuple[re.Pattern[str], Misbehaviour]] = []
        self._guard = threading.Lock()
        self.requests: list[Request] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``, without a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    def misbehave(self, path_pattern: str, misbehaviour: Misbehaviour) -> None:
        """From now on treat requests whose path matches the regular expression so; the newest wins."""
        with self._guard:
            self._misbehaviours.insert(0, (re.compile(path_pattern), misbehaviour))

    def behave(self) -> None:
        """Forget every misbehaviour."""
        with self._guard:
            self._misbehaviours.clear()

    def requested(self, path_pattern: str) -> list[Request]:
        """The requests so far whose path matches the regular expression."""
        with self._guard:
            return [request for request in self.requests if re.search(path_pattern, request.path)]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering; later connections are refused, as by a server that is down."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _misbehaviour_for(self, path: str) -> Misbehaviour | None:
        with self._guard:
            for pattern, misbehaviour in self._misbehaviours:
                if not pattern.search(path) or misbehaviour.times == 0:
                    continue
                if misbehaviour.times is not None:
                    misbehaviour.times -= 1
                return misbehaviour
        return None

    def _respond(self, request: Request) -> tuple[Response, int | None]:
        """The response and after how many bytes of its body the connection is cut."""
        with self._guard:
            self.requests.append(request)
        wrong = self._misbehaviour_for(request.path)
        if wrong is None:
            return _with_range(request, self._answer(request)), None
        time.sleep(wrong.delay)
        if wrong.status is not None:
            return Response(wrong.status, wrong.body, wrong.headers), None
        if wrong.replace is not None:
            return _with_range(request, Response(200, wrong.replace, wrong.headers)), wrong.cut_after
        return _with_range(request, self._answer(request)), wrong.cut_after

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Else a body waits for the client to acknowledge the headers, which it puts off for 40 ms.
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                # A header may come in several lines, as an engine's Accept does: RFC 9110 joins them by commas.
                headers = {name: ", ".join(self.headers.get_all(name, [])) for name in self.headers}
                request = Request(self.command, self.path, headers, self.rfile.read(length))
                response, cut_after = outer._respond(request)
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in response.headers:
                    self.send_header("Content-Length", str(len(response.body)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                self.wfile.write(response.body if cut_after is None else response.body[:cut_after])
                if cut_after is not None:
                    self.close_connection = True

            do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
                return

        return Handler


def _with_range(request: Request, response: Response) -> Response:
    """Honour a ``Range: bytes=a-b`` request header on a whole 200 answer."""
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
    if response.status != 200 or request.method != "GET":
        return response
    headers = {"Accept-Ranges": "bytes", **response.headers}
    if wanted is None or wanted.group(0) == "bytes=-":
        return Response(200, response.body, headers)
    size = len(response.body)
    if wanted.group(1):
        start = int(wanted.group(1))
        end = min(int(wanted.group(2) or size - 1), size - 1)
    else:
        start, end = max(size - int(wanted.group(2)), 0), size - 1
    if start >= size or end < start:
        return Response(416, b"", {"Content-Range": f"bytes */{size}"})
    headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    return Response(206, response.body[start : end + 1], headers)
