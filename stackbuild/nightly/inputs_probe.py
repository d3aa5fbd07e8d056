"""Whether a file is served, and how large it is, without fetching it."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stackbuild.progress import Observer
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RefusedError, TransferError

# 403 is not among them: an object store may mean by it that there is no such file, and a proxy that it lets
# nobody through. Nothing is called gone on that word alone.
_GONE = frozenset({404, 410})
# Requests to one server that may fail, after all their tries, before it counts as down and is asked no more.
_FAILURES_OF_A_SERVER = 3


class Probe:
    """Asks for one byte of a file: unlike HEAD, every server and mirror that serves files answers that.

    Args:
        http: The client; its retries, with Retry-After, are honoured.
        observer: Told of waits.
    """

    def __init__(self, http: HttpClient, observer: Observer) -> None:
        self._http = http
        self._observer = observer
        self._guard = threading.Lock()
        self._failures: Counter[str] = Counter()
        self._last: dict[str, TransferError] = {}

    def size(self, url: str) -> int | None:
        """The file's size in bytes; None when it is not there; -1 when it is and nobody says how large.

        Args:
            url: http, https or file.

        Raises:
            TransferError: The server is down or limiting, after all tries.
            RefusedError: The server refuses for another reason than that it has no such file.
        """
        if url.startswith("file://"):
            path = Path(unquote(urlsplit(url).path))
            return path.stat().st_size if path.is_file() else None
        server = urlsplit(url).netloc
        attempt = 0
        while True:
            with self._guard:
                if self._failures[server] >= _FAILURES_OF_A_SERVER:
                    raise self._last[server]
            attempt += 1
            try:
                return self._asked(url)
            except RefusedError as error:
                if error.status in _GONE:
                    return None
                raise
            except TransferError as error:
                if self._http.retry.is_over(attempt, error):
                    with self._guard:
                        self._failures[server] += 1
                        self._last[server] = error
                    raise
                self._http.pause(attempt, error, self._observer.note)

    def _asked(self, url: str) -> int:
        answer = self._http.open(url, {"Range": "bytes=0-0"})
        if answer.status_code == 200:
            # The whole file was sent: leave the connection, not the line, to bear it.
            answer.close()
            length = answer.headers.get("Content-Length", "")
        else:
            b"".join(self._http.chunks(answer))
            length = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return int(length) if length.isdigit() else -1
