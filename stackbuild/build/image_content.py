"""Configuration and layers of an image the engine has, as bytes: from the store, else from the engine's archive."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from stackbuild.build.saved_layers import saved_layers
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import NotJudgedError
from stackbuild.store.store import Store

_RECORD = "image-configuration"
_LARGEST_CONFIG = 8 << 20


def image_config_bytes(engine: Engine, image: ImageInfo, store: Store) -> bytes:
    """The image's configuration, byte for byte as it was built.

    Args:
        engine: Has the image.
        image: The image.
        store: Has the configuration of an image that was assembled here, and keeps others.

    Raises:
        NotJudgedError: ``engine-refused``: the engine's archive has no such configuration.
    """
    # With the graph drivers an image's id is its configuration's digest; with containerd it is a manifest's.
    known = store.record(_RECORD, image.id)
    sha256 = str(known["sha256"]) if known else image.id.removeprefix("sha256:")
    path = store.blob(sha256)
    content = path.read_bytes() if path is not None else _from_archive(engine, image)
    if tuple(json.loads(content).get("rootfs", {}).get("diff_ids") or ()) != image.diff_ids:
        content = _from_archive(engine, image)
    remember_config(image.id, content, store)
    return content


def remember_config(image_id: str, content: bytes, store: Store) -> None:
    """Keep an image's configuration: engines give it back only with all layers.

    Args:
        image_id: The image's id in the engine.
        content: The configuration's own bytes.
        store: Keeps them.
    """
    store.put_record(_RECORD, image_id, {"sha256": store.add_stream([content])})


def layer_tars(engine: Engine, image: ImageInfo, wanted: tuple[str, ...], store: Store) -> dict[str, Path]:
    """The tars of some of an image's layers, by diff ID: those that were made here, the rest out of the engine.

    Raises:
        NotJudgedError: ``engine-refused``.
    """
    found: dict[str, Path] = {}
    keys = store.layer_keys()
    for diff_id in wanted:
        for key in keys.get(diff_id, ()):
            layer = store.layer(key)
            if layer is not None:
                found[diff_id] = layer.path
    missing = [diff_id for diff_id in wanted if diff_id not in found]
    if missing:
        found |= saved_layers(engine, image.id, missing, store)
    return found


def _from_archive(engine: Engine, image: ImageInfo) -> bytes:
    documents: dict[str, bytes] = {}
    with ChunkReader(engine.save(image.id)) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if not isinstance(content, io.BufferedReader) or not 0 < member.size <= _LARGEST_CONFIG:
                continue
            if content.peek(1)[:1] in (b"{", b"["):
                documents[member.name] = content.read()
    manifest = json.loads(documents.get("manifest.json", b"[]"))
    config = documents.get(str(manifest[0]["Config"]), b"") if manifest else b""
    if tuple(json.loads(config or b"{}").get("rootfs", {}).get("diff_ids") or ()) != image.diff_ids:
        raise NotJudgedError(
            f"The engine's archive of {image.id} lacks the image's configuration.", code="engine-refused"
        )
    return config
