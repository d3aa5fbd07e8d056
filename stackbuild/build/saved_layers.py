"""An image's layers out of the engine's own archive of it (``docker save``)."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.errors import NotJudgedError
from stackbuild.store.store import Store

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


def saved_layers(engine: Engine, image: str, diff_ids: Sequence[str], store: Store) -> dict[str, Path]:
    """The tars of an image's layers, kept in the store.

    Args:
        engine: Has the image.
        image: Its name.
        diff_ids: Its layers.
        store: Keeps the tars, by their own hash.

    Returns:
        Diff ID → tar.

    Raises:
        NotJudgedError: ``engine-refused``: the archive lacks a layer.
    """
    wanted = {diff_id.removeprefix("sha256:") for diff_id in diff_ids}
    found = {sha256: path for sha256 in wanted if (path := store.blob(sha256)) is not None}
    if found.keys() != wanted:
        with ChunkReader(engine.save(image)) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if not isinstance(content, io.BufferedReader):
                    continue
                head = content.peek(2)[:2]
                # Names of layers differ by engine; what is not a layer is JSON or text.
                if head.startswith((b"{", b"[")) or not member.size:
                    continue
                sha256 = store.add_stream(_plain(content, head))
                path = store.blob(sha256)
                if sha256 in wanted and path is not None:
                    found[sha256] = path
    if found.keys() != wanted:
        raise NotJudgedError(
            f"The engine's archive of {image} lacks layers that the image names.", code="engine-refused"
        )
    return {f"sha256:{sha256}": path for sha256, path in found.items()}


def _plain(content: IO[bytes], head: bytes) -> Iterator[bytes]:
    """The content, decompressed where the engine kept it compressed (the containerd store does)."""
    source: IO[bytes] | gzip.GzipFile = content
    if head.startswith(_GZIP):
        source = gzip.GzipFile(fileobj=content)
    while chunk := source.read(_CHUNK):
        yield chunk
