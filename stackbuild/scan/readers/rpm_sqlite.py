"""rpm's database ``rpmdb.sqlite`` (rpm 4.18, ``lib/backend/sqlite.c``): a table of numbers and headers.

SQLite, "Defense Against The Dark Arts" (security.html): a file may bring a schema of its own, in which what looks like a
table is a query without an end. So only a plain table is read, with limits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from stackbuild.scan.byte_source import LARGEST_READ, damaged

# Ten instructions or so read a package. The second is how often they are counted.
_MOST_INSTRUCTIONS, _COUNTED = 100_000_000, 100_000


def sqlite_headers(file: str, size: int) -> Iterator[bytes]:
    """The package headers in the database, in the order of their numbers.

    Args:
        file: The database, which nothing writes to.
        size: Its bytes.

    Raises:
        ScanError: ``file-damaged``.
    """
    left = size  # pages may be used again and again in a file made to fill memory
    try:
        with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as database:
            database.text_factory = bytes
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_READ)
            database.set_progress_handler(_Instructions(), _COUNTED)
            database.execute("PRAGMA trusted_schema = OFF")
            kinds = database.execute("SELECT type FROM sqlite_schema WHERE name = 'Packages' COLLATE NOCASE")
            hidden = database.execute("SELECT count(*) FROM pragma_table_xinfo('Packages') WHERE hidden")
            if kinds.fetchall() != [(b"table",)] or hidden.fetchone() != (0,):
                raise damaged("it has no plain table of packages")
            for header, kind in database.execute("SELECT blob, typeof(blob) FROM Packages ORDER BY hnum"):
                left -= len(header) if kind == b"blob" else 0
                if left < 0:
                    raise damaged("its packages are longer than the file")
                if kind == b"blob":
                    yield header
    except (
        sqlite3.Error,
        UnicodeDecodeError,
    ) as error:  # the latter where a message of SQLite quotes the file
        raise damaged(f"SQLite cannot read it: {error}") from error


class _Instructions:
    """Counts what SQLite does; true when that is more than any real database needs."""

    def __init__(self) -> None:
        self._left = _MOST_INSTRUCTIONS

    def __call__(self) -> bool:
        self._left -= _COUNTED
        return self._left < 0
