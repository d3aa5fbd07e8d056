"""A wheel's METADATA, with as few bytes of the wheel as its index allows."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

from stackbuild.errors import LockError
from stackbuild.once import Once
from stackbuild.progress import Observer
from stackbuild.resolution.wheels.index_page import IndexFile
from stackbuild.resolution.wheels.index_sources import unreachable
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RefusedError, TransferError
from stackbuild.store.store import Store

_TAIL = 1 << 16
_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_RECORD = "wheel-metadata"


class MetadataReader:
    """Reads METADATA of wheels on indexes; each is read once. Safe for several threads.

    Args:
        http: The client.
        store: Keeps what was read, by the wheel's hash, and whole wheels of servers without byte ranges.
        observer: Told of fetches.
    """

    def __init__(self, *, http: HttpClient, store: Store, observer: Observer) -> None:
        self._http = http
        self._store = store
        self._observer = observer
        self._read = Once[tuple[str, str], bytes]()

    def read(self, index: str, file: IndexFile) -> bytes:
        """Return the METADATA of a wheel.

        In order: from the file where it is at hand, from what the store knows of its hash, from what the index
        serves beside it (PEP 658), from byte ranges of the wheel, from the whole wheel.

        Raises:
            NotJudgedError: The index cannot be reached (``index-unreachable``).
            LockError: The file is not a wheel (``wheel-invalid``).
        """
        try:
            return self._read.get((index, file.name), lambda: self._find(file))
        except TransferError as error:
            raise unreachable(index, file.url, error) from error

    def _find(self, file: IndexFile) -> bytes:
        stored = self._store.blob(file.sha256) if file.sha256 else None
        local = Path(file.url) if "://" not in file.url else stored
        if local is not None:
            return metadata_of(local)
        known = self._store.record(_RECORD, file.sha256) if file.sha256 else None
        if known is not None:
            return str(known["metadata"]).encode()
        content = _beside(file, self._http) or _by_ranges(file, self._http)
        if content is None:
            request = FetchRequest(file.name, (file.url,), stated=file.sha256, size=file.size)
            paths = fetch_all([request], self._store, observer=self._observer, http=self._http)
            return metadata_of(paths[file.name])
        if file.sha256:
            text = content.decode("utf-8", errors="replace")
            self._store.put_record(_RECORD, file.sha256, {"metadata": text})
        return content


def metadata_of(wheel: Path) -> bytes:
    """Return the METADATA of a wheel on disk.

    Raises:
        LockError: The file is not a wheel (code ``wheel-invalid``).
    """
    try:
        return _member(wheel)
    except (zipfile.BadZipFile, KeyError) as error:
        raise LockError(f"not a wheel: {error}", code="wheel-invalid", where=wheel.name) from error


def _beside(file: IndexFile, http: HttpClient) -> bytes | None:
    if not file.core_metadata:
        return None
    try:
        return http.read(f"{file.url}.metadata").body
    except RefusedError:
        return None  # announced and not there: torch channels have done so; the wheel itself has it


def _by_ranges(file: IndexFile, http: HttpClient) -> bytes | None:
    """Read METADATA out of the remote zip; None when the server gives no ranges."""
    try:
        remote = _RemoteFile(file.url, http)
    except (RefusedError, _NoRangesError):
        return None
    try:
        return _member(io.BufferedReader(remote, _TAIL))
    except _NoRangesError:
        return None
    except (zipfile.BadZipFile, KeyError) as error:
        raise LockError(f"not a wheel: {error}", code="wheel-invalid", where=file.name) from error


def _member(wheel: Path | io.BufferedReader) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if _METADATA.fullmatch(name)]
        if len(names) != 1:
            raise KeyError(f"{len(names)} METADATA files")
        return archive.read(names[0])


class _NoRangesError(Exception):
    """The server answers a range with the whole file."""


class _RemoteFile(io.RawIOBase):
    """A remote file that is read by byte ranges; its end, where a zip's directory is, comes first."""

    def __init__(self, url: str, http: HttpClient) -> None:
        self._url = url
        self._http = http
        answer = self._http.open(url, {"Range": f"bytes=-{_TAIL}"})
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        if answer.status_code != 206 or not total.isdigit():
            answer.close()
            raise _NoRangesError
        self._tail = b"".join(http.chunks(answer))
        self._size = int(total)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        end = min(self._position + len(view), self._size)
        if end <= self._position:
            return 0
        tail_start = self._size - len(self._tail)
        if self._position >= tail_start:
            data = self._tail[self._position - tail_start : end - tail_start]
        else:
            answer = self._http.read(
                self._url, {"Range": f"bytes={self._position}-{end - 1}", "Accept-Encoding": "identity"}
            )
            if answer.status != 206:
                raise _NoRangesError
            data = answer.body
        view[: len(data)] = data
        self._position += len(data)
        return len(data)
