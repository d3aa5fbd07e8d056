"""rpm's own database ``Packages.db`` (SUSE from 15 SP2 on; rpm 4.20, ``lib/backend/ndb/rpmpkg.c``).

A header and slots of 16 bytes fill the first pages of 4,096 bytes; a slot says in which blocks of 16 bytes a package's
blob lies. Numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from stackbuild.scan.byte_source import ByteSource, damaged

_MAGIC, _SLOT_MAGIC, _BLOB_MAGIC = (int.from_bytes(name, "little") for name in (b"RpmP", b"Slot", b"BlbS"))
_PAGE, _BLOCK = 4096, 16
# Magic, version, generation, pages of slots; the rest of the first 32 bytes says what comes next.
_HEADER = struct.Struct("<IIII16x")
_SLOT = struct.Struct("<IIII")  # magic, package number (0 for none), first block, number of blocks
_BLOB = struct.Struct("<IIII")  # magic, package number, generation, length


def ndb_headers(source: ByteSource) -> Iterator[bytes]:
    """The package headers in the database, in the order of their slots.

    Raises:
        ScanError: ``file-damaged``.
    """
    magic, version, _, pages = source.unpack(_HEADER, 0)
    if magic != _MAGIC or version != 0 or not 0 < pages * _PAGE <= source.size:
        raise damaged("it is no database of rpm's")
    left = source.size  # slots may lie over each other in a file made to fill memory
    for page in range(pages):
        data = source.read(page * _PAGE, _PAGE)
        for slot, number, first, _ in _SLOT.iter_unpack(data[0 if page else _HEADER.size :]):
            if slot != _SLOT_MAGIC:
                raise damaged(f"page {page} holds something else than slots")
            if not number:
                continue
            blob, of, _, length = source.unpack(_BLOB, first * _BLOCK)
            left -= length
            if blob != _BLOB_MAGIC or of != number or left < 0:
                raise damaged(f"the entry of package {number} is not where its slot says")
            yield source.read(first * _BLOCK + _BLOB.size, length)
