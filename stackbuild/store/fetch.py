"""Fetch files into the store: in parallel, resumable, retried, and checked.

A wrong hash has two very different causes. A transfer that was cut or garbled gives another hash each time,
or too few bytes: it is tried again. The same wrong hash twice means that the file itself was changed where
it lies: that stops everything, shows both hashes, and changes no lock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from stackbuild.errors import BuildError, LockError, NotJudgedError, StackbuildError
from stackbuild.progress import Observer
from stackbuild.store.download import Download, Measured, growing_file
from stackbuild.store.http import HttpClient
from stackbuild.store.parallel import in_parallel
from stackbuild.store.retry import RefusedError, TransferError, next_step
from stackbuild.store.store import CHUNK, Store
from stackbuild.urls import local_path, without_credentials

# How many whole transfers with a wrong hash are looked at before the line is called unreliable.
_WHOLE_TRIES = 4
# A changed file outweighs a bad line, and that a file that is nowhere.
_GRAVEST_FIRST = (
    "lock-invalid",
    "artifact-changed",
    "transfer-corrupt",
    "index-unreachable",
    "index-rate-limited",
)


@dataclass(frozen=True)
class FetchRequest:
    """One file to fetch.

    Args:
        name: What it is called in messages and progress.
        candidates: URLs (http, https, file) or local paths, in the order they are tried.
        sha256: What it must be, in hex; None when that is to be found out.
        size: Bytes, when known.
        not_found_code: The code of the LockError when no candidate has it.
        stated: With ``sha256`` None: what an index states that may be wrong. A file that has another hash
            twice in a row is taken as it is.
    """

    name: str
    candidates: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None
    not_found_code: str = "file-not-found"
    stated: str | None = None


def classify_wrong_transfers(
    transfers: Sequence[Measured], size: int | None = None
) -> Literal["artifact-changed", "transfer-corrupt"]:
    """Tell a changed file from a bad line.

    Args:
        transfers: Transfers with a wrong hash, in order.
        size: The size the file must have, in bytes, when known.

    Returns:
        ``artifact-changed`` when two whole transfers gave the same wrong hash, else ``transfer-corrupt``.
    """
    whole = [transfer.sha256 for transfer in transfers if size is None or transfer.size >= size]
    return "artifact-changed" if len(set(whole)) < len(whole) else "transfer-corrupt"


def fetch_all(
    requests: Sequence[FetchRequest],
    store: Store,
    *,
    observer: Observer,
    jobs: int = 4,
    http: HttpClient | None = None,
) -> dict[str, Path]:
    """Fetch files into the store and return where each lies, by ``FetchRequest.name``.

    What the store has is not fetched, and never overwritten.

    Args:
        requests: The files; their names differ.
        store: Where they go.
        observer: Told of every file's progress in bytes.
        jobs: Downloads at a time.
        http: The client; a default one when None.

    Raises:
        LockError: A file was changed (``artifact-changed``), is not as large as its hash says (``lock-invalid``), or
            no candidate has it (its ``not_found_code``).
        NotJudgedError: A line that garbles (``transfer-corrupt``), or a server that is down
            (``index-unreachable``) or limiting (``index-rate-limited``).
        BuildError: The disk is full (``disk-full``).
    """
    own = (http or HttpClient()).scoped()
    jobs_of_requests = [_Fetch(request, store, own, observer) for request in requests]
    paths = in_parallel(_Fetch.run, jobs_of_requests, http=own, jobs=jobs)
    return {request.name: path for request, path in zip(requests, paths, strict=True)}


@dataclass(frozen=True)
class _Fetch:
    request: FetchRequest
    store: Store
    http: HttpClient
    observer: Observer

    def run(self) -> Path:
        request = self.request
        if (there := self._stored()) is not None:
            return there
        failures: list[StackbuildError] = []
        refused: list[str] = []
        for candidate in request.candidates:
            path = local_path(candidate)
            if path is not None and not path.is_file():
                refused.append(f"{candidate}: no such file")
                continue
            try:
                return self._copied(path) if path is not None else self._downloaded(candidate)
            except RefusedError as error:
                refused.append(f"{without_credentials(candidate)}: {error}")
            except (LockError, NotJudgedError) as error:
                failures.append(error)
        for code in _GRAVEST_FIRST:
            for failure in failures:
                if failure.code == code:
                    raise failure
        raise LockError(
            f"{request.name} is not there any more" if refused else f"nothing says where {request.name} is",
            code=request.not_found_code,
            detail="\n".join(refused),
            do="Lock again, or map its index or repository to a mirror that has it in the site file.",
        )

    def _stored(self) -> Path | None:
        known = self.request.sha256 or self.request.stated
        return self.store.blob(known) if known is not None else None

    def _copied(self, path: Path) -> Path:
        """Copy from a local file; its bytes are what they are, so one wrong hash is proof enough."""
        request = self.request
        with path.open("rb") as source:
            total = path.stat().st_size
            got = self.store.add_stream(self._advancing(iter(lambda: source.read(CHUNK), b""), total))
        if request.sha256 not in (None, got):
            raise self._changed(str(path), Measured(got, total))
        if request.sha256 is not None and request.size not in (None, total):
            raise self._other_size(Measured(got, total))
        there = self.store.blob(got)
        if there is None:
            raise BuildError("a file that was just written is gone", code="store-damaged", where=request.name)
        return there

    def _advancing(self, chunks: Iterator[bytes], total: int) -> Iterator[bytes]:
        done = 0
        for chunk in chunks:
            self.http.check_stopped()
            done += len(chunk)
            self.observer.advance(self.request.name, done, total)
            yield chunk

    def _downloaded(self, url: str) -> Path:
        request = self.request
        key = request.sha256 or request.stated
        partial = self.store.partial(key or f"{os.getpid()} {threading.get_ident()} {url}")
        with growing_file(partial, self._note, keep=key is not None):
            if (there := self._stored()) is not None:
                return there
            return self._checked(
                Download(
                    http=self.http,
                    url=url,
                    partial=partial,
                    size=request.size,
                    resumable=key is not None,
                    advance=lambda done, total: self.observer.advance(request.name, done, total),
                    note=self._note,
                )
            )

    def _checked(self, download: Download) -> Path:
        request, wrong = self.request, list[Measured]()
        wanted = request.sha256 or request.stated
        while True:
            try:
                got = download.measured()
            except TransferError as error:
                raise self._unreachable(download.url, error) from error
            if wanted in (None, got.sha256) and request.size in (None, got.size):
                return self.store.adopt(download.partial, got.sha256)
            if request.sha256 == got.sha256:
                raise self._other_size(got)
            wrong.append(got)
            changed = classify_wrong_transfers(wrong, request.size) == "artifact-changed"
            if changed and request.sha256 is None:
                return self.store.adopt(download.partial, got.sha256)
            download.begin_anew()
            if changed:
                raise self._changed(download.url, got)
            if len(wrong) >= _WHOLE_TRIES:
                raise self._corrupt(download.url, wrong)
            self._note("arrived with the wrong bytes; trying again")

    def _note(self, message: str) -> None:
        self.observer.note(f"{self.request.name}: {message}")

    def _wanted(self) -> str:
        size = f" ({self.request.size} bytes)" if self.request.size is not None else ""
        return f"sha256 {self.request.sha256 or self.request.stated or 'unknown'}{size}"

    def _changed(self, where: str, got: Measured) -> LockError:
        return LockError(
            f"{self.request.name} has been changed where it lies; the lock and the stored file are kept",
            code="artifact-changed",
            where=without_credentials(where),
            detail=f"locked: {self._wanted()}\nfound:  sha256 {got.sha256} ({got.size} bytes)",
            do="Find out who changed it. Only if the new file is wanted, lock again with --upgrade.",
        )

    def _other_size(self, got: Measured) -> LockError:
        """The hash is right, so the file is; what is asked for contradicts itself."""
        return LockError(
            f"{self.request.name} has the locked sha256 and {got.size} bytes, and the lock says {self.request.size}; was "
            "it edited by hand?",
            code="lock-invalid",
            where=self.request.name,
            do="Take back the lock that was committed, or lock again.",
        )

    def _corrupt(self, where: str, wrong: Sequence[Measured]) -> NotJudgedError:
        lines = [f"wanted: {self._wanted()}"]
        lines += [f"got:    sha256 {transfer.sha256} ({transfer.size} bytes)" for transfer in wrong]
        return NotJudgedError(
            f"{self.request.name} arrives short or different each time: the line is at fault, not the file",
            code="transfer-corrupt",
            where=without_credentials(where),
            detail="\n".join(lines),
            do="Try again, over another line or proxy; the lock is right.",
        )

    def _unreachable(self, url: str, error: TransferError) -> NotJudgedError:
        state = "limits its clients" if error.limiting else "cannot be reached"
        return NotJudgedError(
            f"{urlsplit(url).hostname} {state}: {error.reason}",
            code="index-rate-limited" if error.limiting else "index-unreachable",
            where=self.request.name,
            do=f"{next_step(error, 'it')} What has arrived is resumed.",
        )
