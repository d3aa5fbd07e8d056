"""rpm's database in each of its three forms: SQLite, rpm's own (``rpm_ndb.py``), Berkeley DB (``rpm_bdb.py``).

Each holds one header for every package (rpm file format, "Header Structure"): counts, an index of 16-byte entries,
and a data area.
"""

from __future__ import annotations

import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing
from typing import IO, Any

from stackbuild.errors import ScanError
from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.readers.rpm_bdb import bdb_headers
from stackbuild.scan.readers.rpm_ndb import ndb_headers
from stackbuild.scan.readers.text import MOST_PACKAGES, at_most

_TEXT_TAGS = {1000: "name", 1001: "version", 1002: "release", 1014: "licence", 1022: "architecture"}
_EPOCH, _SIZE = 1003, 1009
_CHUNK = 1 << 20
_MOST_TAGS = 1 << 14


class RpmReader:
    """``rpmdb.sqlite`` (rpm 4.16 on: RHEL 9, Fedora 33), ``Packages.db`` (SUSE 15 SP2), ``Packages`` (RHEL up to 8)."""

    name = "rpm"
    file_names = frozenset({"rpmdb.sqlite", "Packages", "Packages.db"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 30

    def wants(self, path: str) -> bool:
        """rpm's folders, old and new."""
        return path.startswith(("var/lib/rpm/", "usr/lib/sysimage/rpm/"))

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Packages as :class:`DpkgReader` gives them, without dependencies; None for a database that is damaged."""
        with tempfile.NamedTemporaryFile() as copy:
            while block := stream.read(_CHUNK):
                copy.write(block)
            copy.flush()
            try:
                packages = [_package(header) for header in at_most(MOST_PACKAGES, _headers(path, copy), path)]
            except sqlite3.Error:
                return None
            except ScanError as error:
                if error.code != "file-damaged":
                    raise
                return None
        return sorted(package for package in packages if package is not None)


def _headers(path: str, copy: IO[bytes]) -> Iterator[bytes]:
    if path.endswith(".sqlite"):
        with closing(sqlite3.connect(f"file:{copy.name}?immutable=1", uri=True)) as database:
            for (header,) in database.execute("SELECT blob FROM Packages ORDER BY hnum"):
                if isinstance(header, bytes):
                    yield header
    elif path.endswith(".db"):
        yield from ndb_headers(ByteSource(copy))
    else:
        yield from bdb_headers(ByteSource(copy))


def _package(header: bytes) -> list[Any] | None:
    if len(header) < 8:
        return None
    count, size = struct.unpack_from(">II", header)
    data_at = 8 + 16 * count
    if count > _MOST_TAGS or data_at + size > len(header):
        return None
    texts: dict[str, str] = {}
    numbers: dict[int, int] = {}
    for tag, kind, offset, _ in struct.iter_unpack(">IIII", header[8:data_at]):
        at = data_at + offset
        if at >= len(header):
            continue
        if tag in _TEXT_TAGS:
            end = header.find(b"\0", at)
            texts[_TEXT_TAGS[tag]] = header[at : end if end >= 0 else None].decode("utf-8", "replace")
        elif tag in (_EPOCH, _SIZE) and kind == 4 and at + 4 <= len(header):
            numbers[tag] = struct.unpack_from(">I", header, at)[0]
    if not texts.get("name"):
        return None
    version = f"{texts.get('version', '')}-{texts.get('release', '')}"
    if numbers.get(_EPOCH):
        version = f"{numbers[_EPOCH]}:{version}"
    architecture, licence = texts.get("architecture", ""), texts.get("licence", "")
    return [texts["name"], version, architecture, "", numbers.get(_SIZE, 0), licence, "", ""]
