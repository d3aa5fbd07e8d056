"""The base of an image as a builder needs it: in the engine, as a file tree, as tars."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from stackbuild.build.saved_layers import saved_layers
from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.layers.chain import chain_key
from stackbuild.layers.tree import FileTree
from stackbuild.lock.base import base_diff_ids
from stackbuild.lock.model import BaseLock, BootstrapBaseLock
from stackbuild.progress import Observer
from stackbuild.resolution.bases.base import ensure_base
from stackbuild.resolution.bases.bootstrap_base import bootstrap_layer
from stackbuild.site_config import SiteConfig
from stackbuild.store.store import Store

_TREE = "base-tree"  # kind of record

# What an engine puts into every container, and so into the export of one; no part of the image.
_OF_THE_CONTAINER = frozenset({".dockerenv"})


class Base:
    """A locked base, looked at only as far as a build needs it.

    Args:
        lock: The locked base.
        platform: For example linux/amd64.
        engine: Holds its image.
        store: Keeps its file tree and, where needed, its tars.
        site: Mirrors.
        observer: Told what takes time.
    """

    def __init__(
        self,
        lock: BaseLock,
        platform: str,
        *,
        engine: Engine,
        store: Store,
        site: SiteConfig,
        observer: Observer,
    ) -> None:
        self._lock = lock
        self._platform = platform
        self._engine = engine
        self._store = store
        self._site = site
        self._observer = observer
        self._image = ""

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """Its layers, lowest first."""
        return base_diff_ids(self._lock)

    @property
    def title(self) -> str:
        """What it is, for the image's history."""
        if isinstance(self._lock, BootstrapBaseLock):
            return f"stackbuild: {self._lock.distribution} {self._lock.suite} from {len(self._lock.debs)} locked debs"
        return f"FROM {self._lock.image}:{self._lock.tag}@{self._lock.index_digest}"

    def image(self) -> str:
        """The id of its image in the engine, brought there when it is not."""
        if not self._image:
            self._image = ensure_base(
                self._lock,
                self._platform,
                engine=self._engine,
                store=self._store,
                site=self._site,
                observer=self._observer,
            ).id
        return self._image

    def tree(self) -> FileTree:
        """Its files, read once and then kept in the store."""
        key = chain_key(self.diff_ids)
        known = self._store.record(_TREE, key)
        if known is not None:
            return FileTree.from_json(known)
        if isinstance(self._lock, BootstrapBaseLock):
            with self.bootstrap_tar().open("rb") as stream:
                tree = FileTree.from_tar(stream)
        else:
            image = self.image()
            self._observer.stage("base", "read its files")
            with io.BufferedReader(ChunkReader(self._engine.export(image))) as exported:
                whole = FileTree.from_tar(exported)
            tree = FileTree(
                {
                    path: entry
                    for path in whole
                    if path not in _OF_THE_CONTAINER and (entry := whole.get(path))
                }
            )
        self._store.put_record(_TREE, key, tree.to_json())
        return tree

    def bootstrap_tar(self) -> Path:
        """The one layer of a bootstrapped base."""
        if not isinstance(self._lock, BootstrapBaseLock):
            raise TypeError("the base is an image")
        return bootstrap_layer(self._lock, store=self._store, site=self._site, observer=self._observer).path

    def tars(self) -> Mapping[str, Path]:
        """The tar of each layer by diff ID, for an engine that takes no layer by name alone."""
        if isinstance(self._lock, BootstrapBaseLock):
            return {self._lock.diff_id: self.bootstrap_tar()}
        return saved_layers(self._engine, self.image(), self.diff_ids, self._store)
