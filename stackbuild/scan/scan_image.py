"""Scanning an image: layers that were scanned before come from the store, the others from the source."""

from __future__ import annotations

from stackbuild.errors import ScanError
from stackbuild.progress import Observer
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer import RECORD_KIND, ScannedLayer
from stackbuild.scan.layer_scanner import MOST_ENTRIES
from stackbuild.scan.sources.interface import ImageSource
from stackbuild.store.store import Store


def scan_image(source: ImageSource, observer: Observer, *, store: Store | None = None) -> ImageFiles:
    """Read an image's files.

    Args:
        source: The image.
        observer: Told of each layer that is read.
        store: Keeps what was found in each layer, by diff ID; None to keep nothing.

    Raises:
        ScanError: A layer cannot be read (``layer-damaged``, ``layer-bomb``, ``layer-too-large``, …).
    """
    description = source.describe()
    scanned: dict[str, ScannedLayer] = {}
    for diff_id in description.diff_ids:
        record = store.record(RECORD_KIND, diff_id) if store is not None and diff_id else None
        if record is not None:
            scanned[diff_id] = ScannedLayer.from_record(record)
    wanted = [diff_id for diff_id in dict.fromkeys(description.diff_ids) if diff_id not in scanned]
    total, begun = len(wanted), len(scanned)

    def done(diff_id: str, layer: ScannedLayer) -> None:
        scanned[diff_id] = layer
        observer.advance("layers", len(scanned) - begun, total, "layers")
        if store is not None and diff_id:
            store.put_record(RECORD_KIND, diff_id, layer.to_record())

    if wanted:
        observer.stage("scan", f"{total} of {len(description.diff_ids)} layers")
        source.scan_layers(wanted, done)
    layers = [scanned[diff_id] for diff_id in description.diff_ids]
    if sum(len(layer.entries) for layer in layers) > 2 * MOST_ENTRIES:
        raise ScanError(
            f"its layers have more than {2 * MOST_ENTRIES:,} files",
            code="layer-too-large",
            where=description.name,
            do="Look at what makes them; no image that is meant to be used has so many.",
        )
    return ImageFiles(description, layers)
