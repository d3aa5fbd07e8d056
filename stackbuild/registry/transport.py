"""HTTP to a registry: authentication, retries with back-off, and failures told apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import requests

from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.registry.credentials import authorization, parse_challenge
from stackbuild.registry.reference import Endpoint, is_loopback
from stackbuild.store.outages import Outages
from stackbuild.store.retry_after import retry_after_seconds

_TIMEOUT = (10, 60)
_TRIES = 4
_FIRST_DELAY = 1.0
# Docker Hub may ask for hours; nobody waits that long for a lock.
_LONGEST_DELAY = 60.0
_TRANSIENT = (429, 500, 502, 503, 504)

# What a request carries: bytes, or what opens a file of them anew for each try.
Body = bytes | Callable[[], IO[bytes]]


class RegistryTransport:
    """Sends requests to registries.

    Args:
        ca_bundle: Certificates to trust in place of the system's.
        docker_config: Docker's config.json; None for its usual place.
        sleep: How to wait between tries.
        outages: Registries that are asked no more; None to ask each time.
    """

    def __init__(
        self,
        *,
        ca_bundle: Path | None = None,
        docker_config: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        outages: Outages | None = None,
    ) -> None:
        self._session = requests.Session()
        if ca_bundle is not None:
            self._session.verify = str(ca_bundle)
        self._docker_config = docker_config
        self._sleep = sleep
        self._outages = outages
        self._authorizations: dict[str, str] = {}

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def get(
        self, endpoint: Endpoint, path: str, headers: Mapping[str, str] | None = None, *, stream: bool = False
    ) -> requests.Response:
        """GET a path below a repository.

        Args:
            endpoint: The repository.
            path: For example ``manifests/latest``, or a whole URL that a registry named.
            headers: Further headers.
            stream: Leave the body unread.

        Returns:
            A response with status 200, or 404: what that means is for the caller to say.

        Raises:
            NotJudgedError: ``registry-unreachable``, ``registry-rate-limited``, ``registry-denied``,
                ``registry-credentials``, ``registry-failed``.
        """
        return self.send(endpoint, "GET", path, headers, stream=stream)

    def send(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: Body | None = None,
        stream: bool = False,
        answers: tuple[int, ...] = (200, 404),
        repeatable: bool = True,
    ) -> requests.Response:
        """Send a request about a repository.

        Args:
            endpoint: The repository.
            method: HTTP method.
            path: As ``get``.
            headers: Further headers.
            body: What to send.
            stream: Leave the answer's body unread.
            answers: The statuses that the caller understands.
            repeatable: False where a request that broke off leaves something behind on the registry's side; then
                only an answer that says that nothing was taken (429) is tried again.

        Returns:
            A response with one of ``answers``.

        Raises:
            NotJudgedError: As ``get``.
            LockError: ``registry-failed``: any other answer.
        """
        url = path if "://" in path else f"{endpoint.url}/{path}"
        trouble: StackbuildError | None = None
        for attempt in range(_TRIES):
            delay = _FIRST_DELAY * 2**attempt
            self._require_up(endpoint)
            try:
                response = self._authorized(endpoint, method, url, headers or {}, body, stream)
            except requests.RequestException as error:
                trouble = _unreachable(endpoint, error)
                self._note_failure(endpoint, str(error))
                if isinstance(error, requests.exceptions.SSLError) or not repeatable:
                    raise trouble from error
            else:
                if response.status_code not in _TRANSIENT:
                    if self._outages is not None:
                        self._outages.answered(endpoint.url)
                    return _judged(endpoint, response, answers)
                wait = retry_after_seconds(response.headers.get("Retry-After", ""))
                trouble = _busy(endpoint, response, wait)
                if response.status_code != 429 and wait is None:
                    self._note_failure(endpoint, trouble.what)
                response.close()
                if wait is not None and wait > _LONGEST_DELAY:
                    break
                if not repeatable and response.status_code != 429:
                    break
                delay = max(delay, wait or 0.0)
            if attempt + 1 < _TRIES:
                self._sleep(delay)
        assert trouble is not None
        raise trouble

    def _require_up(self, endpoint: Endpoint) -> None:
        reason = self._outages.down(endpoint.url) if self._outages is not None else None
        if reason is not None:
            raise _down(endpoint, reason)

    def _note_failure(self, endpoint: Endpoint, reason: str) -> None:
        if self._outages is not None:
            self._outages.failed(endpoint.url, reason)

    def _authorized(
        self,
        endpoint: Endpoint,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body | None,
        stream: bool,
    ) -> requests.Response:
        known = self._authorizations.get(endpoint.url)
        response = self._once(method, url, headers, body, known, stream)
        if response.status_code != 401:
            return response
        challenge = parse_challenge(response.headers.get("WWW-Authenticate", ""))
        answer = authorization(self._session, endpoint, challenge, self._docker_config)
        if answer is None or answer == known:
            return response
        response.close()
        self._authorizations[endpoint.url] = answer
        return self._once(method, url, headers, body, answer, stream)

    def _once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: Body | None,
        authorization_header: str | None,
        stream: bool,
    ) -> requests.Response:
        sent = dict(headers)
        if authorization_header:
            sent["Authorization"] = authorization_header
        host = urlsplit(url)
        # A proxy cannot see this machine's loopback.
        proxies = {"no_proxy": host.hostname or ""} if is_loopback(host.netloc) else None
        data = body() if callable(body) else body
        try:
            return self._session.request(
                method,
                url,
                headers=sent,
                data=data,
                stream=stream,
                timeout=_TIMEOUT,
                auth=_as_it_is,
                proxies=proxies,
            )
        finally:
            if callable(body) and data is not None and not isinstance(data, bytes):
                data.close()


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """An auth hook that adds nothing: without one, requests would take a password from ~/.netrc."""
    return request


def error_codes(response: requests.Response) -> tuple[str, ...]:
    """The error codes of a distribution API answer (distribution spec, "Error Codes"); empty for others."""
    try:
        errors = response.json()["errors"]
        return tuple(str(entry["code"]) for entry in errors)
    except (ValueError, KeyError, TypeError):
        return ()


def _judged(endpoint: Endpoint, response: requests.Response, answers: tuple[int, ...]) -> requests.Response:
    status = response.status_code
    if status in answers:
        return response
    codes = error_codes(response)
    response.close()
    if status in (401, 403) or "DENIED" in codes or "UNAUTHORIZED" in codes:
        raise NotJudgedError(
            f"the registry {endpoint.registry} denies access to the repository {endpoint.name}: "
            "it is private, or there is none of that name",
            code="registry-denied",
            where=endpoint.reference,
            do="Check the repository's name; if it is private, run `docker login` for its registry.",
        )
    raise LockError(
        f"the registry answers {status} {', '.join(codes)}".rstrip(),
        code="registry-failed",
        where=endpoint.reference,
        do="Check the image's name and tag.",
        detail=_messages(response),
    )


def _messages(response: requests.Response) -> str:
    """The registry's own words, where it has any."""
    try:
        return "\n".join(str(entry["message"]) for entry in response.json()["errors"] if entry.get("message"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def _busy(endpoint: Endpoint, response: requests.Response, wait: float | None) -> NotJudgedError:
    if response.status_code == 429:
        later = f" in {wait:.0f} s" if wait else " later"
        return NotJudgedError(
            f"the registry {endpoint.registry} limits the rate of requests from here",
            code="registry-rate-limited",
            where=endpoint.reference,
            do=f"Try again{later}, log in with `docker login`, or map the registry to a mirror in stackbuild.toml.",
        )
    return NotJudgedError(
        f"the registry {endpoint.registry} answers {response.status_code} {response.reason}".rstrip(),
        code="registry-unreachable",
        where=endpoint.reference,
        do="Try again later, or map the registry to a mirror in stackbuild.toml.",
    )


def _down(endpoint: Endpoint, reason: str) -> NotJudgedError:
    return NotJudgedError(
        f"the registry {endpoint.host} cannot be reached",
        code="registry-unreachable",
        where=endpoint.reference,
        do=f"Check the network, or map the registry {endpoint.registry} elsewhere: the site file maps it to there."
        if endpoint.host != endpoint.registry
        else "Check the network, or map the registry to a mirror in stackbuild.toml.",
        detail=reason,
    )


def _unreachable(endpoint: Endpoint, error: requests.RequestException) -> NotJudgedError:
    if not isinstance(error, requests.exceptions.SSLError):
        return _down(endpoint, str(error))
    return NotJudgedError(
        f"the certificate of the registry {endpoint.host} is not trusted",
        code="registry-unreachable",
        where=endpoint.reference,
        do="Behind a proxy that inspects TLS, name its certificates as 'ca-bundle' in stackbuild.toml.",
        detail=str(error),
    )
