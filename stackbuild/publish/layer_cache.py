"""A registry as cache: layers by the hash of what made them, so that a machine with an empty store fetches no wheel.

Whoever may write the cache decides what layers hold. Their content is checked against what the cache says of it, not
against the lock; a clean rebuild (``build --no-cache``) shows whether both agree.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stackbuild.digests import short_hex
from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.publish.compressed import LAYER_TYPE, compressed_layer, known_blob
from stackbuild.publish.staging import LAYER_PREFIX
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.writer import EMPTY_JSON, EMPTY_TYPE, RegistryWriter
from stackbuild.sizes import size_text
from stackbuild.store.layer_sink import StoredLayer
from stackbuild.store.store import Store

CACHED_LAYER_TYPE = "application/vnd.stackbuild.layer.v1"
_EXTRA_TYPE = "application/vnd.stackbuild.layer-entries.v1+json+gzip"
_KEY = "io.stackbuild.layer.key"
_DIFF_ID = "io.stackbuild.layer.diff-id"
_GUNZIP = 31  # zlib manual, inflateInit2: a gzip wrapper
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True)
class LayerCache:
    """Layers in one repository, a tag each.

    Attributes:
        client: Reads and writes the registry.
        repository: For example registry.example/team/layers.
    """

    client: RegistryClient
    repository: str

    def fetch(self, key: str, store: Store) -> bool:
        """Bring a layer into a store; False when the cache has it not.

        Raises:
            NotJudgedError: The registry cannot be used, or ``transfer-corrupt``.
            LockError: ``digest-gone``: the cache names a blob that it has lost.
        """
        found = self.client.document(self.repository, _tag(key))
        manifest = json.loads(found[0]) if found else {}
        annotations = manifest.get("annotations") or {}
        if manifest.get("artifactType") != CACHED_LAYER_TYPE or annotations.get(_KEY) != key:
            return False
        tar, extra = manifest["layers"]
        entries = b"".join(_plain(self.client.blob(self.repository, str(extra["digest"]))))
        with store.new_layer(key) as sink:
            for chunk in _plain(self.client.blob(self.repository, str(tar["digest"]))):
                sink.write(chunk)
            if sink.diff_id != annotations.get(_DIFF_ID):
                raise NotJudgedError(
                    f"the cache says that the layer is {annotations.get(_DIFF_ID)}, and it is {sink.diff_id}",
                    code="transfer-corrupt",
                    where=f"{self.repository}:{_tag(key)}",
                    do="Delete that tag, and see who else writes this cache.",
                )
            sink.extra.update(json.loads(entries))
        return True

    def share(self, diff_ids: Iterable[str], store: Store, *, beside: str = "") -> None:
        """Put an image's layers into the cache, as far as a store has them, under every key they were made for.

        Args:
            diff_ids: The image's layers.
            store: Has the layers that were made here.
            beside: As for ``push``.

        Raises:
            As ``push``.
        """
        keys = store.layer_keys()
        for key in dict.fromkeys(key for diff_id in diff_ids for key in keys.get(diff_id, ())):
            layer = store.layer(key)
            if layer is not None:
                self.push(layer, store, beside=beside)

    def push(self, layer: StoredLayer, store: Store, *, beside: str = "") -> bool:
        """Put a layer into the cache; False when it is there already.

        Args:
            layer: The layer.
            store: It is of this store.
            beside: A repository that may have its blob already, to take it over from.

        Raises:
            NotJudgedError: The registry cannot be used.
            LockError: ``registry-failed``.
        """
        if self.client.document(self.repository, _tag(layer.key)) is not None:
            return False
        writer = RegistryWriter(self.client)
        blob = known_blob(layer.diff_id, store)
        there = blob is not None and (
            writer.has_blob(self.repository, blob.digest)
            or (bool(beside) and writer.mount(self.repository, blob.digest, source=beside))
        )
        if blob is None or not there:
            with compressed_layer(layer.diff_id, layer.path, store) as (blob, path):
                writer.put_file(self.repository, lambda: path.open("rb"), blob.digest, blob.size)
        extra = zlib.compressobj(wbits=_GUNZIP)
        entries = extra.compress(json.dumps(layer.extra).encode()) + extra.flush()
        manifest = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "artifactType": CACHED_LAYER_TYPE,
            "config": {"mediaType": EMPTY_TYPE, **writer.put_bytes(self.repository, EMPTY_JSON)},
            "layers": [
                {"mediaType": LAYER_TYPE, "digest": blob.digest, "size": blob.size},
                {"mediaType": _EXTRA_TYPE, **writer.put_bytes(self.repository, entries)},
            ],
            "annotations": {_KEY: layer.key, _DIFF_ID: layer.diff_id},
        }
        writer.put_manifest(self.repository, _tag(layer.key), json.dumps(manifest).encode(), OCI_MANIFEST)
        return True


class SharedStore(Store):
    """A store that asks a cache for the layers it has not.

    Args:
        root: The store's folder.
        cache: Asked when a layer is missing.
        tell: Hears what a person should know.
    """

    def __init__(self, root: Path, cache: LayerCache, tell: Callable[[str], None]) -> None:
        super().__init__(root)
        self._cache: LayerCache | None = cache
        self._tell = tell
        self._absent: set[str] = set()

    def layer(self, key: str) -> StoredLayer | None:
        """Return the layer made under ``key``, from here or from the cache, or None."""
        found = super().layer(key)
        if found is not None or self._cache is None or key in self._absent:
            return found
        try:
            there = self._cache.fetch(key, self)
        except (LockError, NotJudgedError) as error:
            self._go_without(error)
            return None
        if not there:
            self._absent.add(key)
            return None
        found = super().layer(key)
        if found is not None:
            self._tell(f"layer {short_hex(key)} ({size_text(found.size)}) came from {self._cache.repository}")
        return found

    def _go_without(self, error: StackbuildError) -> None:
        """A cache only saves work: without it the layers are made here."""
        self._tell(f"the layer cache cannot be used, so layers are made here: {error.what} [{error.code}]")
        self._cache = None


def _tag(key: str) -> str:
    return LAYER_PREFIX + (key if _PLAIN.fullmatch(key) else hashlib.sha256(key.encode()).hexdigest())


def _plain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """A gzipped stream, decompressed."""
    inflate = zlib.decompressobj(_GUNZIP)
    for chunk in chunks:
        yield inflate.decompress(chunk)
    yield inflate.flush()
