"""The store: a content-addressed folder of files, layers and small records; safe to delete.

Layout: ``blobs/XX/SHA256``, ``layers/KEY.tar`` with ``KEY.json``, ``records/KIND/KEY.json``, ``partial/``
(downloads that grow), ``tmp/`` (files not yet complete) and ``locks/``. Every file appears under its name
complete or not at all, by a rename.

A complete file carries one fixed modification time. A file that somebody wrote to later has another one, so
it is hashed again before it is handed out; the access time is set at each use and orders the eviction.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stackbuild.errors import LockError, UsageError
from stackbuild.progress import Observer
from stackbuild.store import eviction
from stackbuild.store.disk import disk_full_as_error, file_sha256
from stackbuild.store.eviction import Damaged, Evicted, Usage
from stackbuild.store.layer_sink import LayerSink, StoredLayer
from stackbuild.store.root import usable, writable

CHUNK = 1 << 20
# 2001-01-01T00:00:00Z; any moment that no clock gives to a file written today.
STAMP_NS = 978_307_200 * 1_000_000_000
_PLAIN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_DIFF_ID = re.compile(rb'"diff-id": "(sha256:[0-9a-f]{64})"')
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class TemporaryFile:
    """A file that is there while a block runs, the sha256 of its content in hex, and its size in bytes."""

    path: Path
    sha256: str
    size: int


class Store:
    """Content-addressed files, layers by key, and records; several processes may use one at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._blobs = root / "blobs"
        self._layers = root / "layers"
        self._records = root / "records"
        self._partial = root / "partial"
        self._tmp = root / "tmp"
        self._locks = root / "locks"
        with usable(root), disk_full_as_error(root):
            for folder in (self._blobs, self._layers, self._records, self._partial, self._tmp, self._locks):
                folder.mkdir(parents=True, exist_ok=True)
            tag = root / "CACHEDIR.TAG"
            if not tag.exists():
                # The cache directory tagging specification (bford.info/cachedir): back-up tools pass it by.
                tag.write_text("Signature: 8a477f597d28d172789f06886806bc55\n", encoding="ascii")

    # files ------------------------------------------------------------------

    def blob(self, sha256: str) -> Path | None:
        """Return the file whose content has this sha256, or None, also where the file was changed since."""
        path = self._blob_path(sha256)
        return path if self._intact(path, sha256) else None

    def add_file(self, path: Path) -> str:
        """Copy a file into the store; returns its sha256."""
        with path.open("rb") as source:
            return self.add_stream(iter(lambda: source.read(CHUNK), b""))

    def add_stream(self, chunks: Iterable[bytes], *, sha256: str | None = None) -> str:
        """Write a stream into the store; returns its sha256.

        Args:
            chunks: The content.
            sha256: What it must be, when known.

        Raises:
            LockError: The content has another hash (code ``artifact-changed``); nothing is kept.
            BuildError: The disk is full (code ``disk-full``); nothing is kept.
        """
        with self.temporary(chunks) as written:
            if sha256 is not None and written.sha256 != sha256:
                raise LockError(
                    f"the content has sha256 {written.sha256}, wanted {sha256}",
                    code="artifact-changed",
                    where=str(self.root),
                )
            self._commit(written.path, self._blob_path(written.sha256))
        return written.sha256

    @contextmanager
    def temporary(self, chunks: Iterable[bytes]) -> Iterator[TemporaryFile]:
        """Write a stream to a file of the block's own, which is removed when the block ends.

        Raises:
            BuildError: The disk is full (code ``disk-full``).
        """
        with self._new_file() as (stream, path):
            digest = hashlib.sha256()
            for chunk in chunks:
                digest.update(chunk)
                stream.write(chunk)
            stream.flush()
            yield TemporaryFile(path, digest.hexdigest(), stream.tell())

    def adopt(self, path: Path, sha256: str) -> Path:
        """Move a complete file that has just been hashed into the store, and return where it lies now."""
        target = self._blob_path(sha256)
        with disk_full_as_error(self.root):
            self._commit(path, target)
        return target

    def partial(self, key: str) -> Path:
        """Return where a download that can be resumed grows; the file may not exist yet."""
        return self._partial / _file_name(key)

    # layers -----------------------------------------------------------------

    def layer(self, key: str) -> StoredLayer | None:
        """Return the layer made under ``key``, or None."""
        value = _read_json(self._layer_json(key))
        if value is None:
            return None
        layer = StoredLayer(key, value["diff-id"], value["size"], self._layer_tar(key), value["extra"])
        intact = self._intact(layer.path, layer.diff_id.removeprefix("sha256:"), size=layer.size)
        return layer if intact else None

    def layer_keys(self) -> dict[str, tuple[str, ...]]:
        """The keys of all layers in the store, by diff ID: one content may have been made for several keys."""
        found: dict[str, list[str]] = {}
        for path in sorted(self._layers.glob("*.json")):
            with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:  # evicted meanwhile
                # The record can be large; its keys are sorted, so that the diff ID comes first.
                match = _DIFF_ID.search(stream.read(256))
                if match is not None and path.with_suffix(".tar").exists():
                    found.setdefault(match[1].decode(), []).append(path.stem)
        return {diff_id: tuple(keys) for diff_id, keys in found.items()}

    def layer_tars(self) -> dict[str, Path]:
        """The tars of all layers in the store, by diff ID; whether one is intact is for :meth:`layer` to say."""
        return {diff_id: self._layer_tar(keys[0]) for diff_id, keys in self.layer_keys().items()}

    @contextmanager
    def new_layer(self, key: str) -> Iterator[LayerSink]:
        """Write a layer. It is there under ``key`` when the block ends, and not at all when it fails.

        Raises:
            BuildError: The disk is full (code ``disk-full``).
        """
        with self._new_file() as (stream, path):
            sink = LayerSink(stream)
            yield sink
            stream.flush()
            layer = StoredLayer(key, sink.diff_id, sink.tell(), self._layer_tar(key), sink.extra)
            self._commit(path, layer.path)
            value = {"key": key, "diff-id": layer.diff_id, "size": layer.size, "extra": layer.extra}
            self._write_json(self._layer_json(key), value)
            sink.layer = layer

    # records ----------------------------------------------------------------

    def record(self, kind: str, key: str) -> dict[str, Any] | None:
        """Return the small JSON record of that kind and key, or None."""
        return _read_json(self._record_path(kind, key))

    def put_record(self, kind: str, key: str, value: dict[str, Any]) -> None:
        """Write a small JSON record, in place of an older one.

        Raises:
            UsageError: The store may be read alone (code ``store-unusable``).
            BuildError: The disk is full (code ``disk-full``).
        """
        path = self._record_path(kind, key)
        with disk_full_as_error(self.root):
            with writable(self.root):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._write_json(path, value)

    def keep_record(self, kind: str, key: str, value: dict[str, Any]) -> str:
        """Write a record that only saves work, where the store may be written.

        Returns:
            Why it was not written; empty where it was.

        Raises:
            BuildError: The disk is full (code ``disk-full``).
        """
        try:
            self.put_record(kind, key, value)
        except UsageError as error:
            if error.code != "store-unusable":
                raise
            return error.what
        return ""

    # locks ------------------------------------------------------------------

    @contextmanager
    def lock(self, name: str, *, observer: Observer) -> Iterator[None]:
        """Hold the lock ``name`` against other processes and threads; ``observer`` hears of waiting."""
        path = self._locks / f"{_file_name(name)}.lock"
        with (
            disk_full_as_error(self.root),
            (self.root / eviction.IN_USE).open("a", encoding="ascii") as in_use,
            path.open("a+", encoding="ascii") as handle,
        ):
            try:
                fcntl.flock(in_use, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                observer.note(f"waiting for {name}: the store is being emptied")
                fcntl.flock(in_use, fcntl.LOCK_SH)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.seek(0)
                owner = handle.read(20).strip()  # empty just after the file was made
                observer.note(
                    f"waiting for {name}: {f'process {owner}' if owner else 'another process'} is at it"
                )
                fcntl.flock(handle, fcntl.LOCK_EX)
            handle.seek(0)
            handle.truncate()
            handle.write(str(os.getpid()))
            handle.flush()
            # The file stays: removing a lock file lets two processes hold two files of one name.
            yield

    # upkeep -----------------------------------------------------------------

    def usage(self) -> tuple[Usage, ...]:
        """Measure the store, one row per kind of content."""
        return eviction.usage(self.root)

    def evict(self, *, max_bytes: int | None) -> Evicted:
        """Remove what was used longest ago until at most ``max_bytes`` are left; None empties the store.

        Raises:
            NotJudgedError: Another process is using the store (code ``store-in-use``).
        """
        return eviction.evict(self.root, max_bytes=max_bytes)

    def sweep(self) -> list[str]:
        """Remove what killed runs had not completed, and return its names."""
        return eviction.sweep(self.root)

    def damaged(self) -> Iterator[Damaged]:
        """Hash everything again, and yield what is not what it is called."""
        return eviction.damaged(self.root)

    # internal ---------------------------------------------------------------

    def _blob_path(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise ValueError(f"not a sha256 in lower-case hex: {sha256!r}")
        return self._blobs / sha256[:2] / sha256

    def _layer_tar(self, key: str) -> Path:
        return self._layers / f"{_file_name(key)}.tar"

    def _layer_json(self, key: str) -> Path:
        return self._layers / f"{_file_name(key)}.json"

    def _record_path(self, kind: str, key: str) -> Path:
        return self._records / _file_name(kind) / f"{_file_name(key)}.json"

    @contextmanager
    def _new_file(self) -> Iterator[tuple[IO[bytes], Path]]:
        """A file in ``tmp/``, removed unless committed, and locked while it is written."""
        with disk_full_as_error(self.root):
            with writable(self.root):
                descriptor, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=self._tmp)
            path = Path(name)
            try:
                with os.fdopen(descriptor, "wb", buffering=CHUNK) as stream:
                    fcntl.flock(stream, fcntl.LOCK_EX)  # tells a sweep that somebody writes it
                    yield stream, path
            finally:
                path.unlink(missing_ok=True)

    def _commit(self, path: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        path.chmod(0o644)
        os.utime(path, ns=(time.time_ns(), STAMP_NS))
        path.replace(target)

    def _write_json(self, path: Path, value: dict[str, Any]) -> None:
        with self._new_file() as (stream, temporary):
            stream.write(json.dumps(value, sort_keys=True, indent=1).encode())
            stream.flush()
            temporary.chmod(0o644)
            temporary.replace(path)

    def _intact(self, path: Path, sha256: str, *, size: int | None = None) -> bool:
        try:
            status = path.stat()
            intact = status.st_mtime_ns == STAMP_NS or file_sha256(path) == sha256
        except FileNotFoundError:
            return False
        if not intact or (size is not None and status.st_size != size):
            # It stays until a good one takes its place: by now that may have happened.
            return False
        with contextlib.suppress(PermissionError, FileNotFoundError):  # a store shared read-only still serves
            os.utime(path, ns=(time.time_ns(), STAMP_NS))
        return True


def _file_name(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return key
    return hashlib.sha256(key.encode()).hexdigest()


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:  # written by something else: as good as absent, the store only ever saves work
        return None
    return value if isinstance(value, dict) else None
