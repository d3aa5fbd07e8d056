"""A layer as it is written to the store, and as it lies there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True)
class StoredLayer:
    """A finished layer: a tar in the store."""

    key: str
    diff_id: str
    size: int
    path: Path
    extra: dict[str, Any] = field(default_factory=dict)


class LayerSink:
    """What a maker writes a layer's tar to; hashed as it is written.

    ``extra`` is the maker's: JSON values kept beside the layer. ``layer`` is there once the ``with`` block of
    ``Store.new_layer`` has ended.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._size = 0
        self.extra: dict[str, Any] = {}
        self.layer: StoredLayer | None = None

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Append ``data``; returns its length in bytes."""
        self._digest.update(data)
        written = self._stream.write(data)
        self._size += written
        return written

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Hand what is buffered to the file."""
        self._stream.flush()

    @property
    def diff_id(self) -> str:
        """``sha256:…`` of what has been written so far."""
        return f"sha256:{self._digest.hexdigest()}"
