"""Layers on their way to a registry."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from stackbuild.publish.compressed import compressed_layer, known_blob
from stackbuild.store.store import Store


def test_two_that_send_one_layer_leave_each_other_alone(tmp_path: Path) -> None:
    """Stacks that share a layer are published, and put into the layer cache, at the same time."""
    store = Store(tmp_path / "store")
    tar = tmp_path / "layer.tar"
    tar.write_bytes(b"layer" * 1000)
    diff_id = f"sha256:{hashlib.sha256(tar.read_bytes()).hexdigest()}"
    with compressed_layer(diff_id, tar, store) as (first, path):
        with compressed_layer(diff_id, tar, store) as (second, _):
            assert second == first
        content = path.read_bytes()
    assert gzip.decompress(content) == tar.read_bytes()
    assert (first.digest, first.size) == (f"sha256:{hashlib.sha256(content).hexdigest()}", len(content))
    assert known_blob(diff_id, store) == first
    assert [file for kind in ("blobs", "tmp") for file in (store.root / kind).rglob("*")] == []
