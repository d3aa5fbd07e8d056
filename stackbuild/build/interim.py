"""Images that exist only while a stack is built: to run a maker in, and to load big layers early."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stackbuild.engine import ownership
from stackbuild.engine.archive import docker_archive
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.uninterrupted import insisted
from stackbuild.errors import InterruptedRunError, NotJudgedError, StackbuildError
from stackbuild.layers.chain import present_layers

# A diff ID and its tar; without a tar the engine must have the layer.
LayerTar = tuple[str, Path | None]

# Below this a load of its own costs more than it saves.
EARLY_BYTES = 50_000_000


class InterimImages:
    """Loads and at the end removes interim images. A context manager.

    Args:
        engine: The engine.
        run_config: How their containers start.
        architecture: As in an image's configuration: amd64.
        present: Diff IDs of each image the engine has.
        base_tars: Gives the base's tars by diff ID, for an engine that takes no layer by name alone (the
            containerd store); None for others. There every load carries all layers, so none is worth making early.
    """

    def __init__(
        self,
        engine: Engine,
        run_config: Mapping[str, Any],
        architecture: str,
        present: Sequence[Sequence[str]] = (),
        base_tars: Callable[[], Mapping[str, Path]] | None = None,
    ) -> None:
        self._engine = engine
        self._run_config = {key: value for key, value in run_config.items() if key in ("Env", "Cmd")}
        self._architecture = architecture
        self._present = present
        self._base_tars = base_tars
        self._tags: list[str] = []
        self._by_chain: dict[tuple[str, ...], str] = {}
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="early-load")
        self._early: Future[None] | None = None
        self._early_count = 0
        self._loaded = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Of an engine that is gone the failure that led here says more; a later run sweeps what is left.
        told = isinstance(error, StackbuildError)
        with suppress(StackbuildError) if told else nullcontext():
            insisted(self._remove)

    def _remove(self) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True)
        for tag in self._tags:
            self._engine.remove_image(tag)

    def image(self, layers: Sequence[LayerTar]) -> str:
        """An image of exactly these layers; loaded once.

        Args:
            layers: In order, the base's first; the base's may come without a path.

        Returns:
            Its name.
        """
        chain = tuple(diff_id for diff_id, _ in layers)
        if chain not in self._by_chain:
            of_base = self._base_tars() if self._base_tars is not None else {}
            self._by_chain[chain] = self._load(
                [(diff_id, of_base.get(diff_id, path)) for diff_id, path in layers]
            )
        return self._by_chain[chain]

    def load_early(self, layers: Sequence[LayerTar], *, base: Callable[[], object]) -> None:
        """Begin to load these layers while others are made, when that pays and no such load is under way.

        Args:
            layers: All layers so far, in order.
            base: Brings the base to the engine; called only when a load begins.
        """
        if self._base_tars is not None or (self._early is not None and not self._early.done()):
            return
        self.finish_early()
        chain = [diff_id for diff_id, _ in layers]
        self._loaded = max(self._loaded, present_layers(chain, self._present))
        if sum(path.stat().st_size for _, path in layers[self._loaded :] if path is not None) < EARLY_BYTES:
            return
        base()
        todo = [
            (diff_id, path if number >= self._loaded else None)
            for number, (diff_id, path) in enumerate(layers)
        ]
        self._early_count = len(todo)
        self._early = self._pool.submit(self._load_in_thread, todo)

    def finish_early(self) -> None:
        """Wait for an early load; one that the engine did not take is no failure, the last load sends it again.

        Raises:
            StackbuildError: what the load failed with.
        """
        if self._early is not None:
            early, self._early = self._early, None
            try:
                early.result()
            except NotJudgedError as error:
                if error.code != "image-load-failed":
                    raise
            else:
                self._loaded = self._early_count

    def _load_in_thread(self, layers: Sequence[LayerTar]) -> None:
        # A connection of its own: docker-py's sessions are not made for two threads.
        with Engine.connect() as engine:
            self._load(layers, engine)

    def _load(self, layers: Sequence[LayerTar], engine: Engine | None = None) -> str:
        tag = f"stackbuild-interim:{uuid.uuid4().hex[:16]}"
        config = {
            "architecture": self._architecture,
            "os": "linux",
            "config": {**self._run_config, "Labels": {ownership.LABEL: ownership.owner_label()}},
            "rootfs": {"type": "layers", "diff_ids": [diff_id for diff_id, _ in layers]},
            # Makes the image this load's own, so that removing it takes nothing from another build.
            "comment": tag,
        }
        self._tags.append(tag)
        body = docker_archive(json.dumps(config, sort_keys=True).encode(), layers, [tag])
        (engine or self._engine).load(self._until_stopped(body))
        return tag

    def _until_stopped(self, body: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in body:
            if self._stop.is_set():
                raise InterruptedRunError("The early load was stopped.", code="interrupted")
            yield chunk
