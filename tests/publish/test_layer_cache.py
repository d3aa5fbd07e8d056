"""Layers shared through a real registry."""

from __future__ import annotations

from pathlib import Path

from stackbuild.publish.layer_cache import LayerCache, SharedStore
from stackbuild.registry.client import RegistryClient
from stackbuild.store.store import Store
from tests.support.registry import Registry


def test_a_layer_is_shared_under_every_key_it_was_made_for(registry: Registry, tmp_path: Path) -> None:
    first = Store(tmp_path / "first")
    # As an upgrade does that moves a key and not the bytes, or two stacks with one content.
    for key in ("older", "newer"):
        with first.new_layer(key) as sink:
            sink.write(b"the same content" * 1000)
            sink.extra["additions"] = {"made-for": key}
    assert sink.layer is not None
    with first.new_layer("another") as other:
        other.write(b"of another image")
    with RegistryClient() as client:
        cache = LayerCache(client, f"{registry.address}/team/{tmp_path.name}")
        cache.share([sink.layer.diff_id, f"sha256:{'0' * 64}"], first)
        told: list[str] = []
        second = SharedStore(tmp_path / "second", cache, told.append)
        for key in ("older", "newer"):
            layer = second.layer(key)
            assert layer is not None
            assert layer.path.read_bytes() == b"the same content" * 1000
            assert layer.extra == {"additions": {"made-for": key}}
        assert second.layer("another") is None
        assert len(told) == 2
        # What is there is not sent again.
        assert not cache.push(sink.layer, first)
