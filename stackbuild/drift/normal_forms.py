"""Forms of a file's content in which what differs between two runs of the same work is gone."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass

# Files of these kinds are small; a larger one is compared as it is.
LARGEST = 16 << 20
# PEP 552: magic number, flags, then the source's time and size, or its hash.
_PYC_HEADER = 16
_PYC_MAGIC = 4


@dataclass(frozen=True)
class NormalForm:
    """One form.

    Attributes:
        name: As the noise table names it.
        applies: Whether a path, without leading slash, can have it.
        write: The content in that form; None for content that is not what its path says.
    """

    name: str
    applies: Callable[[str], bool]
    write: Callable[[bytes], bytes | None]


def form_of(path: str) -> NormalForm | None:
    """The form of a file at this path; None for what is compared as it is."""
    return next((form for form in FORMS if form.applies(path)), None)


def _code(data: bytes) -> bytes | None:
    """Byte-code without the stamp that says which source it was compiled from (PEP 552)."""
    if len(data) < _PYC_HEADER or data[2:4] != b"\r\n":
        return None
    return data[:_PYC_MAGIC] + data[_PYC_HEADER:]


def _without_days(data: bytes) -> bytes | None:
    """shadow(5) without the day of each password's last change, which is the day of the build."""
    lines = []
    for line in data.split(b"\n"):
        fields = line.split(b":")
        if len(fields) == 9:
            fields[2] = b""
        lines.append(b":".join(fields))
    return b"\n".join(lines)


def _without_bytecode(data: bytes) -> bytes | None:
    """RECORD without the rows of byte-code, which any installer and any run of Python may add, in path order."""
    try:
        rows = [row for row in csv.reader(io.StringIO(data.decode())) if row and not row[0].endswith(".pyc")]
    except (UnicodeDecodeError, csv.Error):
        return None
    return repr(sorted(rows)).encode()


FORMS = (
    NormalForm("code", lambda path: path.endswith(".pyc"), _code),
    NormalForm("accounts", lambda path: path in ("etc/shadow", "etc/shadow-"), _without_days),
    NormalForm("record", lambda path: path.endswith(".dist-info/RECORD"), _without_bytecode),
)
