"""Makes layers one after the other, or takes them from the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from stackbuild.errors import BuildError
from stackbuild.layers.interface import Layer, Maker
from stackbuild.layers.tree import Additions, FileTree, additions_from_json, additions_to_json
from stackbuild.progress import Observer
from stackbuild.store.layer_sink import StoredLayer
from stackbuild.store.store import Store

_EMPTY = "empty-layer"  # kind of record: this key makes no layer
# Engines stop near 125 layers in all; the base's count too (docker-notes, "Traps").
MOST_LAYERS = 12


class _EmptyLayerError(Exception):
    """Leaves ``Store.new_layer`` so that it keeps nothing."""


@dataclass
class LayerRun:
    """The layers above a base, in order, and the file tree they make.

    Attributes:
        store: Keeps the layers.
        observer: Told which layer is made.
        base_tree: Gives the base's tree; asked once, when first needed.
        fresh: Make every layer anew.
        layers: What is there so far.
        made: Groups that were made.
        reused: Groups that the store had.
        seconds: Time each made group took.
    """

    store: Store
    observer: Observer
    base_tree: Callable[[], FileTree]
    fresh: bool = False
    layers: list[Layer] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _tree: FileTree | None = None
    _in_tree: int = 0

    def tree(self) -> FileTree:
        """The file system with all layers so far.

        Raises:
            BuildError: ``file-conflict``: two layers write different bytes to one path.
        """
        if self._tree is None:
            self._tree = self.base_tree()
        while self._in_tree < len(self.layers):
            self._tree = self._tree.with_layer(self.layers[self._in_tree].entries())
            self._in_tree += 1
        return self._tree

    def has(self, maker: Maker) -> bool:
        """True when the maker need not run."""
        key = maker.key()
        return not self.fresh and (
            self.store.record(_EMPTY, key) is not None or self.store.layer(key) is not None
        )

    def add(self, maker: Maker, *, ready: Callable[[], Maker] | None = None) -> Layer | None:
        """Take the maker's layer from the store, or make it.

        Args:
            maker: Knows its key; may lack what only making needs.
            ready: Gives the maker with all it needs; called only when the layer is made.

        Returns:
            The layer; None when there is nothing to put into it.
        """
        key = maker.key()
        stored = None
        if not self.fresh:
            if self.store.record(_EMPTY, key) is not None:
                return None
            stored = self.store.layer(key)
        if stored is not None:
            self.reused.append(maker.group)
            layer = _layer(maker, stored)
        else:
            made = self._make(maker if ready is None else ready(), key)
            if made is None:
                return None
            layer = made
        if len(self.layers) >= MOST_LAYERS:
            raise BuildError("The image would have too many layers.", code="too-many-layers")
        self.layers.append(layer)
        return layer

    def _make(self, maker: Maker, key: str) -> Layer | None:
        self.observer.stage("layer", maker.created_by)
        began = time.monotonic()
        tree = self.tree()
        try:
            with self.store.new_layer(key) as sink:
                additions = maker.make(sink, tree)
                if not additions:
                    raise _EmptyLayerError
                # Raises on a conflict before the layer is kept.
                after = tree.with_layer(additions)
                sink.extra["additions"] = additions_to_json(additions)
        except _EmptyLayerError:
            self.store.put_record(_EMPTY, key, {})
            return None
        self.seconds[maker.group] = round(time.monotonic() - began, 3)
        self.made.append(maker.group)
        if sink.layer is None:
            raise BuildError("The store kept no layer.", code="store-failed", where=maker.group)
        self._tree, self._in_tree = after, len(self.layers) + 1
        return _layer(maker, sink.layer)


def _layer(maker: Maker, stored: StoredLayer) -> Layer:
    def additions() -> Additions:
        return additions_from_json(stored.extra["additions"])

    return Layer(
        group=maker.group,
        key=stored.key,
        diff_id=stored.diff_id,
        size=stored.size,
        path=stored.path,
        created_by=maker.created_by,
        load_additions=additions,
    )
