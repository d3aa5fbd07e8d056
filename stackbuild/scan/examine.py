"""What is taken out of one file's content, reading as little of it as its readers need."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

from stackbuild.errors import ScanError
from stackbuild.scan.byte_source import ByteSource
from stackbuild.scan.elf import MAGIC, ElfReader
from stackbuild.scan.elf_record import elf_row
from stackbuild.scan.fatbin import read_gpu_code
from stackbuild.scan.readers.bundled import BundledReader
from stackbuild.scan.readers.debian import CopyrightReader, DebFilesReader, ExtendedStatesReader
from stackbuild.scan.readers.interface import Reader
from stackbuild.scan.readers.python import JsonReader, MetadataReader, RecordReader, VenvReader
from stackbuild.scan.readers.rpm import RpmReader
from stackbuild.scan.readers.secrets import LARGEST as LARGEST_SECRET
from stackbuild.scan.readers.secrets import secret_kinds
from stackbuild.scan.readers.system import (
    AccountsReader,
    ApkReader,
    DpkgReader,
    LoaderConfigReader,
    OsReleaseReader,
    TorchVersionReader,
)
from stackbuild.sizes import size_text

READERS: tuple[Reader, ...] = (
    OsReleaseReader(),
    DpkgReader(),
    DebFilesReader(),
    CopyrightReader(),
    ExtendedStatesReader(),
    ApkReader(),
    RpmReader(),
    LoaderConfigReader(),
    AccountsReader(),
    TorchVersionReader(),
    MetadataReader(),
    RecordReader(),
    JsonReader(),
    BundledReader(),
    VenvReader(),
)
ELF, SECRET, SHA256 = "elf", "secret", "sha256"

# Files up to this are taken into memory whole.
SMALL = 1 << 20
_CHUNK = 1 << 20
_IN_MEMORY = 16 << 20
# What all records of packages in one layer may hold; a layer of half a million installed files has a fifth of it.
_MOST_ROWS = 2_000_000
_MOST_TEXT = 500_000_000
_KEPT_PROBLEMS = 100
_TRIMMED_AT = 10_000
_SCRIPT = 64 << 10
# Content that can hold neither a library nor a key: not read at all unless a RECORD gives its hash.
_DULL = (
    ".pyc",
    ".mo",
    ".gz",
    ".png",
    ".svg",
    ".html",
    ".js",
    ".css",
    ".h",
    ".hpp",
    ".cuh",
    ".a",
    ".ttf",
    ".xz",
)
# Documentation and the interpreters' own tests hold keys made to be shown.
_SHOWN_KEYS = ("/doc/", "/man/", "/test/", "/tests/", "/testing/", "/examples/")


def _by_name() -> dict[str, tuple[Reader, ...]]:
    found: dict[str, tuple[Reader, ...]] = {}
    for reader in READERS:
        for name in (*reader.file_names, *(f"{folder}/" for folder in reader.folder_names)):
            found[name] = (*found.get(name, ()), reader)
    return found


_BY_NAME = _by_name()


class Problems:
    """Sentences about what could not be read: the first hundred in their own order, and how many more."""

    def __init__(self) -> None:
        self._sentences: set[str] = set()
        self._dropped = 0

    def add(self, sentence: str) -> None:
        """Keep one; of a great many only the first in order are kept."""
        self._sentences.add(sentence)
        if len(self._sentences) >= _TRIMMED_AT:
            kept = sorted(self._sentences)[:_KEPT_PROBLEMS]
            self._dropped += len(self._sentences) - len(kept)
            self._sentences = set(kept)

    def sentences(self) -> tuple[str, ...]:
        """The sentences in order, each once."""
        kept = sorted(self._sentences)
        more = len(kept[_KEPT_PROBLEMS:]) + self._dropped
        return (*kept[:_KEPT_PROBLEMS], *([f"and {more} more"] if more else []))


@dataclass(slots=True)
class Examined:
    """What was found in a layer's files: reader's name → path → value, and what could not be read."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    rows: int = 0
    text: int = 0

    def spend(self, value: Any, size: int) -> None:
        """Count what a reader took out of a file of ``size`` bytes.

        Raises:
            ScanError: ``layer-too-large``: the layer's records of packages would fill memory.
        """
        self.rows += len(value) if isinstance(value, list | dict) else 1
        self.text += size
        if self.rows > _MOST_ROWS or self.text > _MOST_TEXT:
            raise ScanError(
                f"its records of packages have more than {_MOST_ROWS:,} rows or {size_text(_MOST_TEXT)}",
                code="layer-too-large",
                do="Look at what makes them; no image that is meant to be used has so many.",
            )

    def put(self, name: str, path: str, value: Any) -> None:
        """Keep one value."""
        self.facts.setdefault(name, {})[path] = value


def readers_of(path: str) -> tuple[Reader, ...]:
    """The readers that want a file, by its path alone."""
    folder, _, name = path.rpartition("/")
    candidates = _BY_NAME.get(name, ())
    parent = folder[folder.rfind("/") + 1 :] + "/"
    if parent in _BY_NAME:
        candidates = (*candidates, *_BY_NAME[parent])
    return tuple(reader for reader in dict.fromkeys(candidates) if reader.wants(path)) if candidates else ()


def is_hashed(path: str, size: int) -> bool:
    """Whether a RECORD may give this file's hash: packages, and the scripts they put beside their Python."""
    if path.endswith(".pyc"):
        return False
    if "/site-packages/" in path or "/dist-packages/" in path or "/archive-v0/" in path:
        return True  # the last is uv's cache, from which it links files into environments
    return "/bin/" in path and size <= _SCRIPT and not path.startswith(("usr/bin/", "usr/sbin/"))


def is_wanted(path: str, size: int) -> bool:
    """False for a file of which nothing at all is read."""
    if not size:
        return False
    return not path.endswith(_DULL) or is_hashed(path, size) or bool(readers_of(path))


def examine_small(path: str, data: bytes, found: Examined) -> None:
    """Read one file whose content is at hand; see :func:`examine`."""
    hashed = is_hashed(path, len(data))
    if hashed:
        found.put(SHA256, path, hashlib.sha256(data).hexdigest())
    if data[:4] == MAGIC:
        _put_elf(path, ByteSource(io.BytesIO(data), len(data)), found)
    elif len(data) <= LARGEST_SECRET and not path.endswith(_DULL):
        kinds = secret_kinds(data, code=hashed)
        if kinds and not _shows_keys(path):
            found.put(SECRET, path, kinds)
    for reader in readers_of(path):
        _put(reader, path, len(data), io.BytesIO(data), found)


def examine(path: str, size: int, stream: BinaryIO | IO[bytes], start: int | None, found: Examined) -> None:
    """Read one file and put what is in it into ``found``.

    Args:
        path: Of the file, without leading slash.
        size: Bytes of its content.
        stream: At the beginning of its content.
        start: Where that is in a stream that can be sought; None for one that only goes forward.
        found: Where the values go. Damage to the file's own format is noted there; damage to the stream is raised.

    Raises:
        ScanError: The stream breaks off.
    """
    if size <= SMALL:
        data = stream.read(size)
        while len(data) < size and (more := stream.read(size - len(data))):
            data += more
        examine_small(path, data, found)
        return
    hashed = is_hashed(path, size)
    readers = readers_of(path)
    head = stream.read(64)
    wants_all = head[:4] == MAGIC or any(size <= reader.largest for reader in readers)
    if start is None and wants_all:
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
            digest = hashlib.sha256() if hashed else None
            for chunk in _chunks(head, stream, size):
                copy.write(chunk)
                if digest is not None:
                    digest.update(chunk)
            if digest is not None:
                found.put(SHA256, path, digest.hexdigest())
            _large(path, size, copy, 0, readers, found, is_elf=head[:4] == MAGIC)
        return
    if hashed:
        digest = hashlib.sha256()
        for chunk in _chunks(head, stream, size):
            digest.update(chunk)
        found.put(SHA256, path, digest.hexdigest())
    if wants_all and start is not None:
        _large(path, size, stream, start, readers, found, is_elf=head[:4] == MAGIC)
    for reader in readers:
        if size > reader.largest:
            found.problems.add(f"/{path} was not read: it has {size} bytes")


def _large(
    path: str,
    size: int,
    stream: BinaryIO | IO[bytes],
    start: int,
    readers: tuple[Reader, ...],
    found: Examined,
    *,
    is_elf: bool,
) -> None:
    if is_elf:
        _put_elf(path, ByteSource(stream, size, start), found)
    for reader in readers:
        if size <= reader.largest:
            stream.seek(start)
            _put(reader, path, size, io.BufferedReader(_Limited(stream, size), _CHUNK), found)


def _chunks(head: bytes, stream: BinaryIO | IO[bytes], size: int) -> Iterator[bytes]:
    yield head
    left = size - len(head)
    while left > 0:
        chunk = stream.read(min(_CHUNK, left))
        if not chunk:
            raise ScanError(
                "a file ends before its size", code="layer-damaged", do="Save or pull the image again."
            )
        left -= len(chunk)
        yield chunk


def _put(reader: Reader, path: str, size: int, stream: IO[bytes], found: Examined) -> None:
    value = reader.read(path, stream)
    if value is None:
        found.problems.add(f"/{path} was found and could not be read")
    else:
        found.spend(value, size)
        found.put(reader.name, path, value)


def _put_elf(path: str, source: ByteSource, found: Examined) -> None:
    try:
        reader = ElfReader(source)
        file = reader.file()
        code = read_gpu_code(reader, source)
    except ScanError as error:
        found.problems.add(f"/{path} is a damaged ELF file: {error.detail}")
        return
    found.put(ELF, path, elf_row(file, code))


def _shows_keys(path: str) -> bool:
    return any(part in f"/{path}" for part in _SHOWN_KEYS)


class _Limited(io.RawIOBase):
    """The next ``size`` bytes of a stream as a file of their own."""

    def __init__(self, stream: BinaryIO | IO[bytes], size: int) -> None:
        super().__init__()
        self._stream, self._left = stream, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)
