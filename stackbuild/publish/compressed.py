"""Layers as a registry keeps them: gzip of our own, the same bytes each time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stackbuild.store.store import CHUNK, Store

LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
# The level engines use; a higher one gains a few per cent of size for several times the time.
LEVEL = 6
# zlib's number for a gzip wrapper (zlib manual, deflateInit2): its header has no name and the time 0.
_GZIP = 31
_RECORD = "compressed-layer"


@dataclass(frozen=True)
class LayerBlob:
    """A layer in its compressed form.

    Attributes:
        diff_id: ``sha256:…`` of the tar.
        digest: ``sha256:…`` of the blob.
        size: Of the blob, in bytes.
    """

    diff_id: str
    digest: str
    size: int

    @property
    def descriptor(self) -> dict[str, object]:
        """As a manifest lists it."""
        return {"mediaType": LAYER_TYPE, "digest": self.digest, "size": self.size}


def gzip_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """A stream, compressed. Equal streams give equal bytes with the same zlib."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP)
    for chunk in chunks:
        compressed = compressor.compress(chunk)
        if compressed:
            yield compressed
    yield compressor.flush()


@contextmanager
def compressed_layer(diff_id: str, tar: Path, store: Store) -> Iterator[tuple[LayerBlob, Path]]:
    """Compress a layer to a file that is there while the block runs; nobody else knows it, so nobody removes it.

    Args:
        diff_id: The tar's hash.
        tar: The layer.
        store: Remembers the blob's digest.
    """
    with (
        tar.open("rb") as stream,
        store.temporary(gzip_chunks(iter(lambda: stream.read(CHUNK), b""))) as made,
    ):
        blob = LayerBlob(diff_id, f"sha256:{made.sha256}", made.size)
        remember_blob(blob, store)
        yield blob, made.path


def known_blob(diff_id: str, store: Store) -> LayerBlob | None:
    """What a layer was compressed to before, here and with this zlib; None when it was not."""
    found = store.record(_RECORD, _key(diff_id))
    return None if found is None else LayerBlob(diff_id, str(found["digest"]), int(found["size"]))


def remember_blob(blob: LayerBlob, store: Store) -> None:
    """Keep a layer's compressed digest, so that the next push need only ask for it."""
    store.put_record(_RECORD, _key(blob.diff_id), {"digest": blob.digest, "size": blob.size})


def _key(diff_id: str) -> str:
    return f"{diff_id}-{LEVEL}-{zlib.ZLIB_RUNTIME_VERSION}"
