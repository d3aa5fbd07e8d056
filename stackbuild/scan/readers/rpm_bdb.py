"""rpm's older database ``Packages``: a hash of Berkeley DB (RHEL and UBI up to 8, CentOS, Amazon Linux 2).

Berkeley DB 5.3, ``dbinc/db_page.h``: pages of one size; hash pages hold keys and values in turn, values that are too
large for their page lie on chains of overflow pages. Only values are read: each is a package's header.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from stackbuild.scan.byte_source import ByteSource, damaged

_MAGIC = 0x061561
_MAGIC_AT, _PAGE_SIZE_AT, _ENCRYPTION_AT, _LAST_PAGE_AT = 12, 20, 24, 32
_HASH_PAGES, _OVERFLOW_PAGE = (2, 13), 7  # unsorted as before 4.6, sorted
_IN_PAGE, _ON_OVERFLOW_PAGES = 1, 3
_HEAD = 26  # log sequence number, page, previous, next, entries, offset of free bytes (or bytes used), level, type


@dataclass(frozen=True, slots=True)
class _Page:
    following: int
    entries: int
    used: int
    kind: int
    data: bytes


class _Database:
    """The pages of one file."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        head = source.read(0, 512)
        self.order = "<" if struct.unpack_from("<I", head, _MAGIC_AT)[0] == _MAGIC else ">"
        magic, self._page_size, self.last = (
            struct.unpack_from(f"{self.order}I", head, at)[0]
            for at in (_MAGIC_AT, _PAGE_SIZE_AT, _LAST_PAGE_AT)
        )
        size = self._page_size
        if magic != _MAGIC or size < 512 or size > 65536 or size & (size - 1) or head[_ENCRYPTION_AT]:
            raise damaged("it is no hash of Berkeley DB")
        self._left = source.size  # values may lie over each other in a file made to fill memory

    def page(self, number: int) -> _Page:
        """One page, by its number."""
        data = self._source.read(number * self._page_size, self._page_size)
        following, entries, used, kind = struct.unpack_from(f"{self.order}IHHxB", data, 16)
        return _Page(following, entries, used, kind, data)

    def values(self, page: _Page) -> Iterator[bytes]:
        """The values of a hash page: every second item."""
        if _HEAD + 2 * page.entries > len(page.data):
            raise damaged(f"a page claims {page.entries} entries")
        places = struct.unpack_from(f"{self.order}{page.entries}H", page.data, _HEAD)
        for number in range(1, len(places), 2):
            start, end = places[number], places[number - 1]  # items are laid down from the page's end
            kind = page.data[start] if start < len(page.data) else 0
            if kind == _IN_PAGE and start < end:
                self._spend(end - start)
                yield page.data[start + 1 : end]
            elif kind == _ON_OVERFLOW_PAGES and start + 12 <= len(page.data):
                yield self._chained(*struct.unpack_from(f"{self.order}II", page.data, start + 4))

    def _chained(self, number: int, size: int) -> bytes:
        self._spend(size)
        parts: list[bytes] = []
        missing = size
        while missing > 0 and number:
            page = self.page(number)
            if page.kind != _OVERFLOW_PAGE or not 0 < page.used <= len(page.data) - _HEAD:
                raise damaged(f"page {number} holds no part of a value")
            parts.append(page.data[_HEAD : _HEAD + page.used][:missing])
            missing -= len(parts[-1])
            number = page.following
        if missing:
            raise damaged("a value breaks off")
        return b"".join(parts)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise damaged("its values are longer than the file")


def bdb_headers(source: ByteSource) -> Iterator[bytes]:
    """The package headers in the database, in page order.

    Raises:
        ScanError: ``file-damaged``.
    """
    database = _Database(source)
    for number in range(1, database.last + 1):
        page = database.page(number)
        if page.kind in _HASH_PAGES:
            yield from database.values(page)
