"""A package index on loopback that sends each package to the one index it is bound to.

The resolver sees this index alone, so nothing can be taken from a second one: neither by a higher version
nor by an ambient setting. (With several indexes a resolver either merges them, or takes the first that knows
a name; bindings of the resolver's own do not reach packages that only come in as dependencies.)
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

from packaging.utils import canonicalize_name

from stackbuild.errors import StackbuildError
from stackbuild.resolution.wheels.index_bindings import Bindings
from stackbuild.resolution.wheels.index_metadata import MetadataReader
from stackbuild.resolution.wheels.index_page import JSON_TYPE, IndexFile, write_page
from stackbuild.resolution.wheels.index_sources import Indexes


class IndexRouter:
    """Answers ``/simple/PROJECT/`` and ``/files/PROJECT/FILE.whl.metadata``.

    ``failure`` is the first error an index gave; the resolver only sees a failing server then.
    """

    def __init__(self, indexes: Indexes, bindings: Bindings, metadata: MetadataReader) -> None:
        self._indexes = indexes
        self._bindings = bindings
        self._metadata = metadata
        self._guard = threading.Lock()
        self.failure: StackbuildError | None = None

    def files(self, project: str) -> tuple[IndexFile, ...] | None:
        """Return the files a project may come from: of its own index, and of its variant.

        Raises:
            StackbuildError: The index cannot be reached, or is none.
        """
        page = self._indexes.page(self._bindings.index_of(project), project)
        if page is None:
            return None
        return tuple(file for file in page if self._bindings.admits(project, file.version))

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on a free loopback port while the block runs; yields the index's URL."""
        server = _Server(("127.0.0.1", 0), _handler(self._answer))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        if self.failure is not None:  # the resolver tries again; its result is lost already
            return 502, "text/plain", self.failure.code.encode()
        kind, _, rest = unquote(path).strip("/").partition("/")
        project, _, name = rest.partition("/")
        project = canonicalize_name(project)
        try:
            files = self.files(project)
            if kind == "simple" and not name and files is not None:
                located = [(file, f"/files/{project}/{quote(file.name)}") for file in files]
                return 200, JSON_TYPE, write_page(project, located)
            wheel = name.removesuffix(".metadata")
            file = next((file for file in files or () if file.name == wheel and name != wheel), None)
            if kind == "files" and file is not None:
                metadata = self._metadata.read(self._bindings.index_of(project), file)
                return 200, "application/octet-stream", metadata
        except StackbuildError as error:
            with self._guard:
                self.failure = self.failure or error
            return 502, "text/plain", error.code.encode()
        return 404, "text/plain", b"not found"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # The resolver opens some fifty connections at once; one that finds no place waits for seconds.
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a resolver that has gone away; whatever else fails is a mistake, and shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _handler(answer: Callable[[str], tuple[int, str, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else each page waits for the resolver to acknowledge its headers, which it puts off for 40 ms.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status, content_type, body = answer(self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
            """Stay silent."""

    return Handler
