"""The SQLite file itself: opening, schema versions, transactions, and its failures as sentences."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from stackbuild.errors import BuildError, NotJudgedError, StackbuildError, UsageError
from stackbuild.nightly.history.schema import APPLICATION_ID, STEPS, Step
from stackbuild.progress import Observer
from stackbuild.store.disk import disk_full_as_error

_BETWEEN_TRIES = 0.05  # seconds
_NO_SPACE = 1 << 20  # bytes: with less than this an input/output error means a full disk


class Database:
    """A connection to a history file of the newest schema.

    Args:
        path: The file; made, with its folder, when missing.
        observer: Hears of waiting for another process.
        patience: Seconds to wait for another process.
        steps: The schema's steps, oldest first.

    Raises:
        NotJudgedError: The file is damaged or no history (``history-damaged``), of a newer stackbuild
            (``history-newer``), or another process holds it for too long (``history-busy``).
        UsageError: It cannot be made or written (``history-unusable``).
        BuildError: The disk is full (``disk-full``).
    """

    def __init__(
        self, path: Path, *, observer: Observer, patience: float, steps: Sequence[Step] = STEPS
    ) -> None:
        self.path = path
        self._observer = observer
        self._patience = patience
        self._steps = steps
        self._open()

    def _open(self) -> None:
        path = self.path
        with self._told(), disk_full_as_error(path), _usable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise _unusable(path, "it is no file")
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=_BETWEEN_TRIES)
        try:
            with self._told():
                self._prepare(self._steps)
            self._file = _identity(path)
        except BaseException:
            self._connection.close()
            raise

    def open_anew_where_replaced(self) -> bool:
        """Open what is at the path now where the file was removed or replaced meanwhile; True when it was.

        What is written to a file without a name is lost with the connection.
        """
        if _identity(self.path) == self._file:
            return False
        self._observer.note(
            f"{self.path} was removed or replaced meanwhile: the history goes on in what is there now"
        )
        self.close()
        self._open()
        return True

    def close(self) -> None:
        """Close the file; a transaction that is open is undone."""
        self._connection.close()

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run one statement inside ``reading`` or ``writing``."""
        return self._connection.execute(statement, parameters)

    def insert(self, statement: str, parameters: Sequence[object]) -> int:
        """Run one INSERT of one row inside ``writing``; returns the row's number."""
        return int(self._connection.execute(f"{statement} RETURNING rowid", parameters).fetchone()[0])

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all of it is in the file, on the disk, when the block ends, or nothing of it."""
        with self._told():
            self._patiently("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._undo()
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One view of the file, whatever other processes add meanwhile; may be nested."""
        if self._connection.in_transaction:
            with self._told():
                yield
            return
        with self._told():
            self._patiently("BEGIN")
            try:
                # The first look takes the lock; a process that closes or recovers the file shuts others out.
                self._patiently("SELECT 1 FROM sqlite_schema")
                yield
            finally:
                self._undo()

    def give_back(self) -> None:
        """Give the pages that a removal left free back to the file system."""
        with self._told():
            # Each step frees one page, and only executescript() takes them all.
            self._connection.executescript("PRAGMA incremental_vacuum")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # internal ---------------------------------------------------------------

    def _prepare(self, steps: Sequence[Step]) -> None:
        run = self._connection.execute
        self._patiently("PRAGMA foreign_keys = ON")
        # In WAL mode FULL makes each commit survive a loss of power (SQLite, "PRAGMA synchronous").
        self._patiently("PRAGMA synchronous = FULL")
        version = self._checked_version(steps)
        if version == len(steps):
            return
        if version == 0:
            self._patiently("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
        self._patiently("PRAGMA journal_mode = WAL")
        self._patiently("BEGIN IMMEDIATE")
        try:
            # Another process may have been first.
            for step in steps[self._checked_version(steps) :]:
                for statement in step:
                    run(statement)
            run(f"PRAGMA application_id = {APPLICATION_ID}")
            run(f"PRAGMA user_version = {len(steps)}")
            run("COMMIT")
        except BaseException:
            self._undo()
            raise

    def _checked_version(self, steps: Sequence[Step]) -> int:
        (version,) = self._patiently("PRAGMA user_version").fetchone()
        (application,) = self._patiently("PRAGMA application_id").fetchone()
        (tables,) = self._patiently("SELECT count(*) FROM sqlite_schema").fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise NotJudgedError(
                "the file is a database of another program, not a history",
                code="history-damaged",
                where=str(self.path),
                do="Name another file.",
            )
        if version > len(steps):
            raise NotJudgedError(
                f"the history is of schema {version}, written by a newer stackbuild; "
                f"this one knows schemas up to {len(steps)}",
                code="history-newer",
                where=str(self.path),
                do="Use the newer stackbuild, or name another file.",
            )
        return int(version)

    def _patiently(self, statement: str) -> sqlite3.Cursor:
        """Run a statement that may meet another process's lock, and wait for that within reason."""
        deadline = time.monotonic() + self._patience
        told = False
        while True:
            try:
                return self._connection.execute(statement)
            except sqlite3.OperationalError as error:
                if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            if not told:
                self._observer.note(f"waiting for {self.path}: another process is writing to it")
                told = True
            time.sleep(_BETWEEN_TRIES)

    def _undo(self) -> None:
        # A failure such as a full disk may have ended the transaction by itself.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            failure = _failure(self.path, error)
            if failure is None:
                raise
            raise failure from error


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from one that takes its name later; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _usable(path: Path) -> Iterator[None]:
    try:
        yield
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _unusable(path: Path, words: str) -> UsageError:
    return UsageError(
        f"the history cannot be written: {words}",
        code="history-unusable",
        where=str(path),
        do="Name a file in a folder that you may write to; SQLite keeps two more files beside it.",
    )


def _primary(error: sqlite3.Error) -> int:
    """The primary result code (SQLite, "Result and Error Codes"); 0 when it is not SQLite's own error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _failure(path: Path, error: sqlite3.Error) -> StackbuildError | None:
    """The sentence for what SQLite met outside itself; None for a mistake of this program."""
    match _primary(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return NotJudgedError(
                "another process has been writing to the history for too long",
                code="history-busy",
                where=str(path),
                do="Wait for it to end, then run again.",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return _damaged(path, str(error))
        case sqlite3.SQLITE_ERROR if str(error).startswith(("no such table", "no such column")):
            return _damaged(path, str(error))
        case sqlite3.SQLITE_FULL:
            return _full(path, error)
        case sqlite3.SQLITE_IOERR if _free(path) < _NO_SPACE:
            return _full(path, error)
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return _unusable(path, str(error))
    return None


def _damaged(path: Path, words: str) -> NotJudgedError:
    return NotJudgedError(
        f"the history is damaged: {words}",
        code="history-damaged",
        where=str(path),
        do="Put a copy of it back, or move it away with its -wal and -shm files: the next night begins "
        "a new one. `sqlite3 FILE .recover` saves what can be read.",
    )


def _full(path: Path, error: sqlite3.Error) -> BuildError:
    return BuildError(
        f"the disk is full: {error}",
        code="disk-full",
        where=str(path),
        do="Free some space; the nights in the history are whole, the last one was not added.",
    )


def _free(path: Path) -> int:
    """Bytes that a user may still write beside the file."""
    status = os.statvfs(path.parent)
    return status.f_bavail * status.f_frsize
