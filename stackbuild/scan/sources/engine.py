"""An image in the engine. The engine's own archive of it is the slowest way to its layers, so it is the last.

A layer is read from the store when stackbuild made it or fetched it before; else from the folder that overlay2
keeps it in, where this user may read that; else from ``docker save``, which writes the whole image out.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from stackbuild.engine.chunk_reader import ChunkReader
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.models import ImageInfo
from stackbuild.errors import NotJudgedError, ScanError
from stackbuild.scan.sources.interface import Done, ImageDescription, LayerReader, T, commands_of
from stackbuild.scan.sources.saved_stream import SavedStream
from stackbuild.store.store import Store

_AT_ONCE = 2
# As the classic builder and BuildKit word them (Dockerfile reference); WORKDIR and COPY may make a layer.
_ONLY_CONFIGURES = re.compile(
    r"(?:/bin/sh -c #\(nop\)\s+)?"
    r"(?:ARG|CMD|ENTRYPOINT|ENV|EXPOSE|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD|SHELL|STOPSIGNAL|USER|VOLUME)\b"
)


class EngineSource:
    """An image that the engine has.

    Args:
        engine: The engine.
        reference: Name or id of the image.
        store: Where tars of layers may be; None to look at none.
        folders: Whether overlay2's folders may be read.

    Raises:
        NotJudgedError: ``image-missing``.
    """

    def __init__(
        self, engine: Engine, reference: str, *, store: Store | None = None, folders: bool = True
    ) -> None:
        image = engine.image(reference)
        if image is None:
            raise NotJudgedError(
                "The engine does not have this image.",
                code="image-missing",
                where=reference,
                do="Build it, or pull it first.",
            )
        self._engine, self._reference, self._store = engine, reference, store
        self._image = image
        self._folders = dict(zip(image.diff_ids, image.layer_folders, strict=False)) if folders else {}
        self._containerd = engine.info().containerd_store

    def describe(self) -> ImageDescription:
        """The image's description as the engine gives it."""
        image = self._image
        config = {
            "os": image.os,
            "architecture": image.architecture,
            "created": image.created,
            "config": dict(image.config),
            "rootfs": {"type": "layers", "diff_ids": list(image.diff_ids)},
            "history": _history(image),
        }
        return ImageDescription(
            self._reference,
            config,
            image.diff_ids,
            "" if self._containerd else image.id,
            commands_of(config, len(image.diff_ids)),
        )

    def scan_layers(self, wanted: Sequence[str], done: Done) -> None:
        """Scan the wanted layers, each from where it is read fastest."""
        # Not imported where every layer was scanned before: its readers take long to import.
        from stackbuild.scan.layer_scanner import LayerScanner

        self.read_layers(wanted, LayerScanner(), done)

    def read_layers(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        """Read the wanted layers, each from where it is read fastest."""
        tars = self._store.layer_tars() if self._store is not None else {}
        left: list[str] = []
        # Waiting for the disk and hashing leave the interpreter free for another layer.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            reads = {
                pool.submit(self._read, diff_id, tars.get(diff_id), reader): diff_id for diff_id in wanted
            }
            try:
                for read in as_completed(reads):
                    layer = read.result()
                    if layer is None:
                        left.append(reads[read])
                    else:
                        done(reads[read], layer)
            except BaseException:
                # Else an interrupt would wait until all layers are read.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if left:
            self._from_archive(left, reader, done)

    def _read(self, diff_id: str, tar: Path | None, reader: LayerReader[T]) -> T | None:
        """One layer from its folder or its tar in the store; None where it is in neither."""
        where = f"{self._reference}: {diff_id}"
        folder = self._folders.get(diff_id)
        if folder is not None and os.access(folder, os.R_OK | os.X_OK):
            try:
                return reader.of_folder(Path(folder), where=where)
            except ScanError as error:
                if error.code != "layer-unreadable":
                    raise
        if tar is None:
            return None
        try:
            stream = tar.open("rb")
        except FileNotFoundError:  # the store was emptied meanwhile; the engine has the layer, too
            return None
        with stream:
            return reader.of_tar(stream, seekable=True, where=where)

    def _from_archive(
        self, wanted: Sequence[str], reader: LayerReader[T], done: Callable[[str, T], None]
    ) -> None:
        with ChunkReader(self._engine.save(self._image.id)) as chunks:
            archive = SavedStream[T](io.BufferedReader(chunks, 1 << 20), self._reference)
            archive.read_layers(self._image.diff_ids, wanted, reader, done)


def _history(image: ImageInfo) -> list[dict[str, object]]:
    """The history as a configuration has it.

    The engine lists the newest first and gives sizes in place of a mark for entries without a layer. A layer that
    holds folders or deletions alone has no size either; where their number does not fit, instructions that
    can only change the configuration are taken for those without a layer.
    """
    entries = [(str(entry.get("CreatedBy") or ""), entry.get("Size")) for entry in reversed(image.history)]
    empty = [not size for _, size in entries]
    if empty.count(False) != len(image.diff_ids):
        empty = [not size and _ONLY_CONFIGURES.match(command) is not None for command, size in entries]
    return [
        {"created_by": command, "empty_layer": mark}
        for (command, _), mark in zip(entries, empty, strict=True)
    ]
