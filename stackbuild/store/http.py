"""HTTP as the store and the indexes speak it: proxies, a CA bundle, and an end on demand."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import requests
import urllib3.exceptions

from stackbuild import __version__
from stackbuild.errors import InterruptedRunError, UsageError
from stackbuild.store.outages import Outages
from stackbuild.store.retry import RefusedError, RetryPolicy, TransferError
from stackbuild.store.retry_after import retry_after_seconds

_CHUNK = 1 << 18
_USUAL = RetryPolicy()
_LIMITING = frozenset({429, 503})
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Answer:
    """A whole answer: its status, headers, the URL it came from in the end, and its body."""

    status: int
    headers: Mapping[str, str]
    url: str
    body: bytes


class HttpClient:
    """A client for several threads; each has its own connections.

    Proxies come from the environment. Certificates are checked against ``ca_bundle``, else against the file
    that ``SSL_CERT_FILE`` or ``REQUESTS_CA_BUNDLE`` names, else against the library's own.

    Args:
        ca_bundle: A PEM file.
        retry: How the callers that retry do so.
        timeout: Seconds without a byte before a try has failed.
        outages: Servers that are asked no more; None to ask each time.
    """

    def __init__(
        self,
        ca_bundle: Path | None = None,
        *,
        retry: RetryPolicy = _USUAL,
        timeout: float = 30.0,
        outages: Outages | None = None,
    ) -> None:
        if ca_bundle is not None and not ca_bundle.is_file():
            raise UsageError("the CA bundle does not exist", code="site-config-invalid", where=str(ca_bundle))
        self.retry = retry
        self._timeout = timeout
        self._outages = outages
        self._bundle = ca_bundle or _ambient_bundle(os.environ)
        self._local = threading.local()
        self._stopped = threading.Event()
        self._open: weakref.WeakSet[requests.Response] = weakref.WeakSet()
        self._guard = threading.Lock()

    @property
    def outages(self) -> Outages | None:
        """Servers that are asked no more."""
        return self._outages

    @property
    def ca_bundle(self) -> Path | None:
        """The PEM file certificates are checked against, or None for the library's own."""
        return self._bundle

    def open(self, url: str, headers: Mapping[str, str] | None = None) -> requests.Response:
        """Send one GET and return the answer with its body still to be read.

        Raises:
            InterruptedRunError: The client was stopped.
            TransferError: No connection, a time-out, a limit or a failing server.
            RefusedError: Any other answer that is neither 200, 206 nor 416.
        """
        self.check_stopped()
        self._require_up(url)
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        try:
            response = self._session().get(
                url,
                headers=sent,
                stream=True,
                timeout=self._timeout,
                verify=str(self._bundle) if self._bundle else True,
            )
        except requests.RequestException as error:
            untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            reason = _reason(error)
            down = self._note_failure(url, reason)
            raise TransferError(reason, untrusted=untrusted, given_up=down) from error
        if response.status_code in (200, 206, 416):
            self._note_answer(url)
            with self._guard:
                self._open.add(response)
            if self._stopped.is_set():  # it may have been meanwhile, and have missed this answer
                response.close()
                self.check_stopped()
            return response
        status, reason = response.status_code, response.reason or ""
        retry_after = retry_after_seconds(response.headers.get("Retry-After", ""))
        response.close()
        if status in _TRY_AGAIN:
            limiting = status == 429 or (status in _LIMITING and retry_after is not None)
            down = not limiting and self._note_failure(url, f"{status} {reason}")
            raise TransferError(
                f"{status} {reason}", retry_after=retry_after, limiting=limiting, given_up=down
            )
        self._note_answer(url)
        raise RefusedError(status, reason)

    def _require_up(self, url: str) -> None:
        reason = self._outages.down(url) if self._outages is not None else None
        if reason is not None:
            raise TransferError(reason, given_up=True)

    def _note_failure(self, url: str, reason: str) -> bool:
        """Note it; returns whether the server counts as down from now on."""
        if self._outages is None:
            return False
        self._outages.failed(url, reason)
        return self._outages.down(url) is not None

    def _note_answer(self, url: str) -> None:
        if self._outages is not None:
            self._outages.answered(url)

    def read(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        note: Callable[[str], None] | None = None,
    ) -> Answer:
        """Send a GET, again after a while where that may help, and return the whole small answer.

        Args:
            url: Where.
            headers: Further request headers.
            note: Told of every wait.

        Raises:
            InterruptedRunError: The client was stopped.
            TransferError: The last of ``retry.attempts`` tries.
            RefusedError: The server says that it is not to be had.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self.open(url, {"Accept-Encoding": "gzip", **(headers or {})})
                body = b"".join(self.chunks(response, decode=True))
                return Answer(response.status_code, response.headers, response.url, body)
            except TransferError as error:
                if self.retry.is_over(attempt, error):
                    raise
                self.pause(attempt, error, note)

    def pause(self, attempt: int, error: TransferError, note: Callable[[str], None] | None = None) -> None:
        """Wait after the failed try number ``attempt`` (from 1), and say so.

        Raises:
            InterruptedRunError: The client was stopped.
        """
        delay = self.retry.delay(attempt, error.retry_after)
        if note is not None:
            note(f"{error.reason}; trying again in {delay:.0f} s ({attempt} of {self.retry.attempts})")
        self._stopped.wait(delay)
        self.check_stopped()

    def scoped(self) -> HttpClient:
        """A client with the same settings, which can be stopped by itself."""
        return HttpClient(self._bundle, retry=self.retry, timeout=self._timeout, outages=self._outages)

    def check_stopped(self) -> None:
        """Raise InterruptedRunError when the client was stopped."""
        if self._stopped.is_set():
            raise InterruptedRunError("stopped", code="interrupted")

    def stop(self) -> None:
        """End every wait and every answer that is still being read; for good."""
        self._stopped.set()
        with self._guard:
            answers = list(self._open)
        for answer in answers:
            # A body that has been read to its end, or let go, has nothing to shut down.
            with contextlib.suppress(ValueError, RuntimeError, OSError, urllib3.exceptions.HTTPError):
                answer.raw.shutdown()

    @staticmethod
    def chunks(response: requests.Response, *, decode: bool = False) -> Iterator[bytes]:
        """Yield the body; a body that ends before its announced length is a TransferError."""
        try:
            yield from response.raw.stream(_CHUNK, decode_content=decode)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TransferError(_reason(error)) from error
        finally:
            response.close()

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            session.headers["User-Agent"] = f"stackbuild/{__version__}"
            self._local.session = session
        return session


def _ambient_bundle(environ: Mapping[str, str]) -> Path | None:
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        if environ.get(name) and Path(environ[name]).is_file():
            return Path(environ[name])
    return None


def _reason(error: BaseException) -> str:
    """The innermost cause in words, without object addresses."""
    while True:
        inner = error.__cause__ or error.__context__
        if inner is None or not isinstance(inner, (OSError, urllib3.exceptions.HTTPError)):
            break
        error = inner
    text = getattr(error, "strerror", None) or str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
