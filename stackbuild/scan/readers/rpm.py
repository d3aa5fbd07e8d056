"""rpm's database in each of its three forms, which hold one header for every package (``rpm_header.py``).

SQLite (``rpm_sqlite.py``), rpm's own (``rpm_ndb.py``), Berkeley DB (``rpm_bdb.py``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

from stackbuild.errors import ScanError
from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.readers.rpm_bdb import bdb_headers
from stackbuild.scan.readers.rpm_header import RpmPackage, rpm_package
from stackbuild.scan.readers.rpm_ndb import ndb_headers
from stackbuild.scan.readers.rpm_sqlite import sqlite_headers
from stackbuild.scan.readers.text import MOST_PACKAGES, MOST_ROWS, at_most, too_many

_FOLDERS = ("var/lib/rpm", "usr/lib/sysimage/rpm")
_CHUNK = 1 << 20


class RpmReader:
    """``rpmdb.sqlite`` (rpm 4.16 on: RHEL 9, Fedora 33), ``Packages.db`` (SUSE 15 SP2), ``Packages`` (RHEL up to 8)."""

    name = "rpm"
    file_names = frozenset({"rpmdb.sqlite", "Packages", "Packages.db"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 30

    def wants(self, path: str) -> bool:
        """rpm's folders, old and new."""
        return path.rpartition("/")[0] in _FOLDERS

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Packages as :class:`DpkgReader` gives them, with module, files and ghosts; None for a database that is damaged.

        Dependencies stand one on a line. Files and ghosts are those of :class:`RpmPackage`.
        """
        with tempfile.NamedTemporaryFile() as copy:
            while block := stream.read(_CHUNK):
                copy.write(block)
            copy.flush()
            try:
                packages = [*_packages(path, copy)]
            except ScanError as error:
                if error.code != "file-damaged":
                    raise
                return None
        return sorted((_row(package) for package in packages), key=lambda row: row[:-2])


def _packages(path: str, copy: IO[bytes]) -> Iterator[RpmPackage]:
    rows = 0
    for header in at_most(MOST_PACKAGES, _headers(path, copy), path):
        package = rpm_package(header)
        if package is None:
            continue
        rows += package.rows
        if rows > MOST_ROWS:
            raise too_many(MOST_ROWS, path)
        yield package


def _row(package: RpmPackage) -> list[Any]:
    return [
        *(package.name, package.version, package.architecture, package.source, package.size, package.licence),
        *("\n".join(package.requires), "\n".join(package.provides), package.module),
        *(package.files, package.ghosts),
    ]


def _headers(path: str, copy: IO[bytes]) -> Iterator[bytes]:
    if path.endswith(".sqlite"):
        yield from sqlite_headers(copy.name, ByteSource(copy).size)
    elif path.endswith(".db"):
        yield from ndb_headers(ByteSource(copy))
    else:
        yield from bdb_headers(ByteSource(copy))
