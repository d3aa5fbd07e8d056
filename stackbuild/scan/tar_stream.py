"""Reading a layer's tar front to back, however large, damaged or hostile it is.

POSIX.1-2001 pax and GNU tar formats. ``tarfile`` keeps every member in memory, trusts the sizes of extended
headers and takes a cut for an end; here headers are bounded, and an archive without its end is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from stackbuild.errors import ScanError

BLOCK = 512
_ZEROS = bytes(BLOCK)
_CHUNK = 1 << 20
_MOST_DIGITS = 18
_LARGEST_HEADER = 1 << 20  # an extended header holds a path, a link and attributes
_MOST_HEADERS = 16  # extended headers before one member: two of GNU's, or one of pax
_PAX_FIELDS = frozenset({"path", "linkpath", "uid", "gid", "size", "mtime"})
_PAX_SPARSE = "GNU.sparse."
_KINDS = {b"0": "file", b"\0": "file", b"7": "file", b"1": "hardlink", b"2": "symlink", b"5": "dir"}
_OTHER = b"346"  # character device, block device, pipe
_GNU_SPARSE = b"S"
_XATTR = "SCHILY.xattr."


class Readable(Protocol):
    """What a tar is read from; ``read`` may give less than it is asked for."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""


class Seekable(Readable, Protocol):
    """A file, where what nobody wants is passed over without being read."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to ``offset``."""


@dataclass(slots=True)
class Member:
    """One member of a tar.

    Attributes:
        name: As written.
        kind: As :class:`~stackbuild.scan.entries.FileEntry` has it.
        size: Bytes of content that follow in the archive.
        offset: Where its content begins in the archive.
        sparse: True when the content is a sparse file's map and pieces, not the file itself.
        mtime: Seconds since the epoch.
        xattrs: Extended attributes, name and value, as pax writes them (SCHILY.xattr).
    """

    name: str
    kind: str
    mode: int
    uid: int
    gid: int
    size: int
    linkname: str
    offset: int
    sparse: bool = False
    mtime: int = 0
    xattrs: tuple[tuple[str, str], ...] = ()


class TarStream:
    """Iterates over a tar's members; :meth:`read` gives the current one's content.

    Args:
        stream: The tar, not compressed.
        seekable: The same stream where it can be sought from its beginning, else None.
        start: Where the tar begins in a seekable stream.
        where: What the tar is, for errors.
    """

    def __init__(
        self, stream: Readable, *, seekable: Seekable | None = None, start: int = 0, where: str = ""
    ) -> None:
        self._stream = stream
        self._seekable = seekable
        self._start = start
        self._where = where
        self._at = 0  # position in the tar
        self._content_end = 0
        self._following = 0

    def __iter__(self) -> Iterator[Member]:
        zeros = headers = 0
        extended: dict[str, str] = {}
        everywhere: dict[str, str] = {}
        while True:
            self._skip_to(self._following)
            header = self._exactly(BLOCK, "header")
            if header == _ZEROS:
                self._following = self._at
                zeros += 1
                if zeros == 2:
                    return
                continue
            zeros = 0
            member = self._member(header)
            kind = header[156:157]
            if kind in b"xXgLK":
                if member.size > _LARGEST_HEADER:
                    raise self._damaged(f"an extended header claims {member.size} bytes")
                headers += kind != b"g"
                if headers > _MOST_HEADERS:
                    raise self._damaged("its extended headers do not end")
                data = self._exactly(member.size, "extended header")
                if kind == b"g":
                    # Attributes of all files there are none; what is kept must not grow with the headers.
                    everywhere |= {key: value for key, value in _pax(data).items() if key in _PAX_FIELDS}
                elif kind == b"L":
                    extended["path"] = _text(data.rstrip(b"\0"))
                elif kind == b"K":
                    extended["linkpath"] = _text(data.rstrip(b"\0"))
                else:
                    extended |= _pax(data)
                continue
            headers = 0
            if everywhere or extended:
                self._extend(member, {**everywhere, **extended})
                extended = {}
            if kind == _GNU_SPARSE:
                self._pass_sparse_headers(header, member)
            if kind not in _KINDS and kind not in _OTHER and kind != _GNU_SPARSE:
                continue
            yield member

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes of the current member; none once it is all read."""
        size = min(size, self._content_end - self._at)
        return self._exactly(size, "content") if size > 0 else b""

    def _member(self, header: bytes) -> Member:
        total = sum(header[:148]) + 256 + sum(header[156:])
        if _number(header[148:156]) != total:
            raise self._damaged(f"the header at byte {self._at - BLOCK} has a wrong checksum")
        kind = _KINDS.get(header[156:157], "other")
        name = _field(header[:100])
        if header[257:262] == b"ustar" and header[257:265] != b"ustar  \0" and header[345:346] != b"\0":
            name = f"{_field(header[345:500])}/{name}"
        if kind == "file" and header[156:157] == b"\0" and name.endswith("/"):
            kind = "dir"  # as the oldest tars wrote directories
        size = _number(header[124:136])
        if size is None or not 0 <= size < 10**_MOST_DIGITS:
            raise self._damaged(f"the header at byte {self._at - BLOCK} has no size")
        if kind not in ("file", "other"):
            size = 0
        self._content_end = self._at + size
        self._following = self._at + (size + BLOCK - 1) // BLOCK * BLOCK
        numbers = (_number(header[100:108]), _number(header[108:116]), _number(header[116:124]))
        mode, uid, gid = (number or 0 for number in numbers)
        return Member(
            name=name,
            kind=kind,
            mode=mode & 0o7777,
            uid=uid,
            gid=gid,
            size=size,
            linkname=_field(header[157:257]),
            offset=self._start + self._at,
            mtime=_number(header[136:148]) or 0,
        )

    def _extend(self, member: Member, values: dict[str, str]) -> None:
        member.name = values.get("path", member.name)
        member.linkname = values.get("linkpath", member.linkname)
        for field in ("uid", "gid"):
            if _is_number(values.get(field, "")):
                setattr(member, field, int(values[field]))
        if _is_number(values.get("size", "")) and member.kind == "file":
            member.size = int(values["size"])
            self._content_end = self._at + member.size
            self._following = self._at + (member.size + BLOCK - 1) // BLOCK * BLOCK
        if "GNU.sparse.major" in values or "GNU.sparse.map" in values:
            member.sparse = True
            member.name = values.get("GNU.sparse.name", member.name)
        seconds = values.get("mtime", "").partition(".")[0]  # since 1970, with a fraction
        if _is_number(seconds):
            member.mtime = int(seconds)
        attributes = [item for item in values.items() if item[0].startswith(_XATTR)]
        member.xattrs = tuple(sorted((name.removeprefix(_XATTR), value) for name, value in attributes))

    def _pass_sparse_headers(self, header: bytes, member: Member) -> None:
        member.kind, member.sparse = "file", True
        more = header[482]
        while more:
            block = self._exactly(BLOCK, "sparse header")
            more = block[504]
            self._content_end += BLOCK
            self._following += BLOCK

    def _skip_to(self, position: int) -> None:
        if position <= self._at:
            return
        if self._seekable is not None:
            # The last byte is read, so that a cut inside skipped content is found here too.
            self._seekable.seek(self._start + position - 1)
            self._at = position - 1
            self._exactly(1, "content")
            return
        while self._at < position:
            self._exactly(min(_CHUNK, position - self._at), "content")

    def _exactly(self, size: int, what: str) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            parts = [data]
            missing = size - len(data)
            while missing and (part := self._stream.read(missing)):
                parts.append(part)
                missing -= len(part)
            if missing:
                raise self._damaged(f"it ends at byte {self._at + size - missing}, inside a {what}")
            data = b"".join(parts)
        self._at += size
        return data

    def _damaged(self, detail: str) -> ScanError:
        return ScanError(
            "the layer's tar is damaged or cut off",
            code="layer-damaged",
            where=self._where,
            detail=detail,
            do="Save or pull the image again.",
        )


def _field(data: bytes) -> str:
    return _text(data.partition(b"\0")[0])


def _text(data: bytes) -> str:
    """UTF-8; bytes that are not are shown as ``\\xNN``, so that a name can be written in any report."""
    return data.decode("utf-8", "backslashreplace")


def _is_number(text: str) -> bool:
    """Whether a pax value is a number that any file or user can have."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _number(data: bytes) -> int | None:
    """A number as tar writes it: octal digits, or base 256 where its first bit is set; None for neither."""
    if data[0] & 0x80:
        value = int.from_bytes(data[1:], "big")
        return value - (1 << 8 * (len(data) - 1)) if data[0] == 0xFF else value
    text = data.strip(b" \0")
    if not text:
        return 0
    try:
        return int(text, 8)
    except ValueError:
        return None


def _pax(data: bytes) -> dict[str, str]:
    """The records ``LENGTH KEY=VALUE`` of an extended header that are used here; what is malformed ends it."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 20)
        digits = data[at:space] if space > 0 else b""
        if not digits.isdigit() or int(digits) <= space - at + 1:
            break
        end = at + int(digits)
        if end > len(data):
            break
        key, equals, value = data[space + 1 : end - 1].partition(b"=")
        name = _text(key)
        if equals and (name in _PAX_FIELDS or name.startswith((_PAX_SPARSE, _XATTR))):
            found[name] = _text(value)
        at = end
    return found
