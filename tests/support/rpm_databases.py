"""rpm headers and databases made of a few lines."""

from __future__ import annotations

import sqlite3
import struct
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Value = str | int | Sequence[str] | Sequence[int]
_SENSES = {"<": 2, ">": 4, "=": 8, "<=": 10, ">=": 12}


def rpm_header(tags: Mapping[int, Value]) -> bytes:
    """A header with these values: a text, a number, or a list of either."""
    index, data = b"", b""
    for tag, value in tags.items():
        if isinstance(value, str):
            kind, count, piece = 6, 1, value.encode() + b"\0"
        elif isinstance(value, int):
            kind, count, piece = 4, 1, struct.pack(">I", value)
        elif value and isinstance(value[0], int):
            kind, count, piece = 4, len(value), struct.pack(f">{len(value)}I", *value)
        else:
            kind, count, piece = 8, len(value), b"".join(str(text).encode() + b"\0" for text in value)
        if kind == 4:
            data += bytes(-len(data) % 4)
        index += struct.pack(">IIII", tag, kind, len(data), count)
        data += piece
    return struct.pack(">II", len(tags), len(data)) + index + data


def rpm(
    name: str,
    version: str = "1",
    *,
    requires: Iterable[str] = (),
    provides: Iterable[str] = (),
    files: Iterable[str] = (),
    ghosts: Iterable[str] = (),
    architecture: str = "x86_64",
) -> bytes:
    """The header of a package; requirements and what it provides as rpm prints them, files with leading slash."""
    tags: dict[int, Value] = {1000: name, 1001: version, 1002: "1", 1022: architecture}
    for numbers, texts in (((1049, 1048, 1050), requires), ((1047, 1112, 1113), provides)):
        rows = [_relation(text) for text in texts]
        if rows:
            tags |= {
                tag: [row[place] for row in rows]  # type: ignore[misc] # names, flags, versions
                for place, tag in enumerate(numbers)
            }
    brought, written = [*files], [*ghosts]
    listed = [path.rpartition("/") for path in (*brought, *written)]
    if listed:
        folders = sorted({f"{folder}/" for folder, _, _ in listed})
        tags |= {1117: [name for _, _, name in listed], 1118: folders}
        tags[1116] = [folders.index(f"{folder}/") for folder, _, _ in listed]
        tags[1037] = [0] * len(brought) + [64] * len(written)
    return rpm_header(tags)


def rpm_database(*headers: bytes) -> bytes:
    """``rpmdb.sqlite`` with these headers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rpmdb.sqlite"
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        database.executemany("INSERT INTO Packages (blob) VALUES (?)", [(header,) for header in headers])
        database.commit()
        database.close()
        return path.read_bytes()


def _relation(text: str) -> tuple[str, int, str]:
    name, _, rest = text.partition(" ")
    operator, _, version = rest.partition(" ")
    if text.startswith("(") or operator not in _SENSES:
        return text, 0, ""
    return name, _SENSES[operator], version
