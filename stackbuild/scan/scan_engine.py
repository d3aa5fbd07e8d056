"""Scanning an image that an engine at hand has."""

from __future__ import annotations

from stackbuild.engine.docker_engine import Engine
from stackbuild.progress import Observer
from stackbuild.scan.scan import Scan, scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.engine import EngineSource
from stackbuild.store.store import Store


def scan_engine_image(engine: Engine, reference: str, *, store: Store, observer: Observer) -> Scan:
    """Scan an image; layers that were scanned before come from the store.

    Args:
        engine: Has the image.
        reference: Its name or id.
        store: Has tars of layers, and keeps what was found in each.
        observer: Told of each layer that is read.

    Raises:
        NotJudgedError: ``image-missing``.
        ScanError: A layer cannot be read.
    """
    return scan_of(scan_image(EngineSource(engine, reference, store=store), observer, store=store))
