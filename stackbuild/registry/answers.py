"""What registries answered, kept for as long as several stacks are judged: those of one base ask for it once.

Docker Hub counts each GET of a manifest as a pull, and limits those.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from hashlib import sha256
from pathlib import Path

# A manifest, index or configuration as it came, and its media type.
Document = tuple[bytes, str]


class RegistryAnswers:
    """Documents by what was asked for; trouble, and that something is not there, is not kept. Safe for threads.

    Args:
        folder: Shared by the processes of one night, made and removed by whoever began it; None keeps them in memory.
            Where it is gone or full each process asks for itself.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._known: dict[str, Document] = {}

    def get(self, asked: str) -> Document | None:
        """What was answered, if it was asked for."""
        with self._guard:
            known = self._known.get(asked)
            if known is None and self._folder is not None:
                known = _read(self._folder / _name(asked))
                if known is not None:
                    self._known[asked] = known
            return known

    def put(self, asked: str, document: Document) -> None:
        """Keep an answer."""
        with self._guard:
            self._known[asked] = document
            if self._folder is not None:
                _write(self._folder / _name(asked), document)


def _name(asked: str) -> str:
    return sha256(asked.encode()).hexdigest()


def _read(path: Path) -> Document | None:
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return body, str(json.loads(head))


def _write(path: Path, document: Document) -> None:
    body, media_type = document
    try:
        descriptor, made = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(media_type).encode() + b"\n" + body)
        Path(made).replace(path)
    except OSError:  # a full disk: what is whole is under its name, all else is nothing
        with contextlib.suppress(OSError):
            Path(made).unlink()
