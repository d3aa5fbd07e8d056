"""A docker-archive, as ``images.load`` takes it, made while it is read."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

_CHUNK = 1 << 20


def docker_archive(
    config: bytes, layers: Sequence[tuple[str, Path | None]], tags: Sequence[str] = ()
) -> Iterator[bytes]:
    """Yield the archive's bytes; never more than one chunk of a layer is in memory.

    Args:
        config: The image's configuration; its sha256 is the image's id.
        layers: diff ID and tar of each layer, lowest first; without a tar the engine must have the layer.
        tags: Names that the image gets, with their tags.
    """
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{diff_id.removeprefix('sha256:')}/layer.tar" for diff_id, _ in layers]
    manifest = [{"Config": config_name, "RepoTags": list(tags) or None, "Layers": names}]
    yield from _member(config_name, config)
    for name, (_, path) in zip(names, layers, strict=True):
        if path is not None:
            yield from _member(name, path)
    yield from _member("manifest.json", json.dumps(manifest).encode())
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _member(name: str, content: bytes | Path) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size = content.stat().st_size if isinstance(content, Path) else len(content)
    yield info.tobuf(tarfile.PAX_FORMAT)
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk
    yield b"\0" * (-info.size % tarfile.BLOCKSIZE)
