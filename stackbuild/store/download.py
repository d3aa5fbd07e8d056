"""One download: a file that grows, is resumed, retried and measured."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stackbuild.store.disk import disk_full_as_error
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import TransferError

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Measured:
    """What a file turned out to be: its sha256 in hex and its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Download:
    """Brings one URL into one growing file.

    Args:
        http: The client.
        url: Where the file is.
        partial: Where it grows; what is there already is resumed when ``resumable``.
        size: Bytes it must have, when known.
        resumable: False when nothing says that an older half belongs to today's file.
        advance: Told bytes done and bytes in all.
        note: Told why a try failed.
    """

    http: HttpClient
    url: str
    partial: Path
    size: int | None
    resumable: bool
    advance: Callable[[int, int | None], None]
    note: Callable[[str], None]

    def measured(self) -> Measured:
        """Transfer until the whole file is there, whatever its bytes, and say what they are.

        Raises:
            TransferError: The last of several tries that brought nothing.
            RefusedError: The server says that it is not to be had.
            InterruptedRunError: The client was stopped.
        """
        fruitless = 0
        while True:
            before = _size(self.partial)
            try:
                return self._once()
            except TransferError as error:
                if not self.resumable:
                    self.begin_anew()
                # A line that brings a little each time gets there: only tries that bring nothing count.
                fruitless = 1 if _size(self.partial) > before else fruitless + 1
                if self.http.retry.is_over(fruitless, error):
                    raise
                self.http.pause(fruitless, error, self.note)

    def begin_anew(self) -> None:
        """Forget what has arrived; the file stays, since it is what others wait for."""
        os.truncate(self.partial, 0)

    def _once(self) -> Measured:
        have = _size(self.partial)
        if self.size is not None and have == self.size:
            return _measure(self.partial)
        if self.size is not None and have > self.size:
            have = 0
        response = self.http.open(self.url, {"Range": f"bytes={have}-"} if have else None)
        if have and not _continues(response.status_code, response.headers.get("Content-Range", ""), have):
            have = 0
            if response.status_code != 200:
                response.close()
                response = self.http.open(self.url)
        if not have and response.status_code != 200:
            response.close()
            raise TransferError(f"unexpected answer {response.status_code}")
        announced = response.headers.get("Content-Length", "")
        total = have + int(announced) if announced.isdigit() else self.size
        with self.partial.open("r+b" if have else "wb") as target:
            digest = hashlib.sha256()
            while target.tell() < have:
                digest.update(target.read(min(_CHUNK, have - target.tell())))
            done = have
            for data in self.http.chunks(response):
                self.http.check_stopped()
                target.write(data)
                digest.update(data)
                done += len(data)
                self.advance(done, total)
        return Measured(digest.hexdigest(), done)


@contextmanager
def growing_file(path: Path, note: Callable[[str], None], *, keep: bool) -> Iterator[None]:
    """Hold a growing file against other threads and processes; it may have moved away when the turn comes.

    The lock is on the file itself, so that no lock files pile up. Whoever holds it may write the file, cut it
    and move it away, but must not put another in its place: that one would not be locked.

    Args:
        path: The file; made when it is not there.
        note: Told of waiting.
        keep: Whether what has arrived stays when the block ends without moving it away; an empty file never does.
    """
    with disk_full_as_error(path), _locked(path, note) as handle:
        try:
            yield
        finally:
            # Once this file has moved away, the one of this name is another's, who may be writing it.
            if _lies_at(path, handle) and not (keep and path.stat().st_size):
                path.unlink()


def _locked(path: Path, note: Callable[[str], None]) -> IO[bytes]:
    while True:
        handle = path.open("ab")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("another process is fetching it; waiting")
            fcntl.flock(handle, fcntl.LOCK_EX)
        if _lies_at(path, handle):
            return handle
        handle.close()  # the other finished it and moved it away


def _lies_at(path: Path, handle: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def _measure(path: Path) -> Measured:
    with path.open("rb") as stream:
        return Measured(hashlib.file_digest(stream, "sha256").hexdigest(), path.stat().st_size)


def _continues(status: int, content_range: str, have: int) -> bool:
    return status == 206 and content_range.startswith(f"bytes {have}-")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
