"""What seldom changes from night to night, stored once under the hash of its content."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from stackbuild.errors import NotJudgedError
from stackbuild.findings import Verdict
from stackbuild.nightly.history.database import Database


class Contents:
    """JSON values and sets of verdicts by content; what has been read once is kept."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._verdicts: dict[int, Mapping[str, Verdict]] = {}

    def put(self, value: object) -> int:
        """Store a JSON value, unless it is there; returns its number."""
        text = _json_bytes(value)
        digest = hashlib.sha256(text).digest()
        known = self._database.execute("SELECT id FROM contents WHERE sha256 = ?", (digest,)).fetchone()
        if known is not None:
            return int(known[0])
        return self._database.insert(
            "INSERT INTO contents (sha256, body) VALUES (?, ?)", (digest, zlib.compress(text))
        )

    def get(self, number: int) -> Any:
        """The JSON value of that number."""
        row = self._database.execute("SELECT body FROM contents WHERE id = ?", (number,)).fetchone()
        with self._whole():
            return json.loads(zlib.decompress(row[0]))

    def read(self, text: str) -> Any:
        """The JSON value of a column that holds its text."""
        with self._whole():
            return json.loads(text)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except (TypeError, ValueError, zlib.error) as error:
            raise NotJudgedError(
                "the history is damaged: a stored value cannot be read",
                code="history-damaged",
                where=str(self._database.path),
                detail=str(error),
                do="Put a copy of it back, or move it away: the next night begins a new one.",
            ) from error

    def put_verdicts(self, verdicts: Mapping[str, Verdict]) -> int:
        """Store a set of verdicts by gate, unless it is there; returns its number."""
        digest = hashlib.sha256(_json_bytes(sorted(verdicts.items()))).digest()
        known = self._database.execute("SELECT id FROM verdict_sets WHERE sha256 = ?", (digest,)).fetchone()
        if known is not None:
            return int(known[0])
        number = self._database.insert("INSERT INTO verdict_sets (sha256) VALUES (?)", (digest,))
        for code, verdict in verdicts.items():
            self._database.execute("INSERT OR IGNORE INTO gates (code) VALUES (?)", (code,))
            self._database.execute(
                "INSERT INTO verdicts SELECT ?, id, ? FROM gates WHERE code = ?",
                (number, verdict.value, code),
            )
        return number

    def verdicts(self, number: int) -> Mapping[str, Verdict]:
        """The verdicts by gate of that number, in the order in which the gates were first seen."""
        if number not in self._verdicts:
            rows = self._database.execute(
                "SELECT code, verdict FROM verdicts JOIN gates ON gates.id = gate WHERE verdict_set = ? "
                "ORDER BY gate",
                (number,),
            )
            self._verdicts[number] = {code: Verdict(verdict) for code, verdict in rows}
        return self._verdicts[number]


def _json_bytes(value: object) -> bytes:
    # ASCII, so that text which is no valid Unicode, such as a file name's lone surrogate, comes back as it was.
    return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")
