"""Scanning an image: layers that were scanned before come from the store, the others from the source."""

from __future__ import annotations

from stackbuild.errors import ScanError
from stackbuild.progress import Observer
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer import MOST_ENTRIES, RECORD_KIND, ScannedLayer, kept_layer
from stackbuild.scan.sources.interface import ImageSource
from stackbuild.store.store import Store

# Engines stop at 127 (overlay2: 128 folders in one mount).
_MOST_LAYERS = 1_000


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
    if len(description.diff_ids) > _MOST_LAYERS:
        raise _too_large(f"it has {len(description.diff_ids):,} layers", description.name)
    scanned: dict[str, ScannedLayer] = {}
    for diff_id in description.diff_ids:
        known = kept_layer(store.record(RECORD_KIND, diff_id)) if store is not None and diff_id else None
        if known is not None:
            scanned[diff_id] = known
    wanted = [diff_id for diff_id in dict.fromkeys(description.diff_ids) if diff_id not in scanned]
    total, begun = len(wanted), len(scanned)

    paths = sum(len(layer.entries) for layer in scanned.values())
    not_kept = ""

    def done(diff_id: str, layer: ScannedLayer) -> None:
        nonlocal paths, not_kept
        paths += len(layer.entries)
        if paths > 2 * MOST_ENTRIES:
            raise _too_large(f"its layers have more than {2 * MOST_ENTRIES:,} files", description.name)
        scanned[diff_id] = layer
        observer.advance("layers", len(scanned) - begun, total, "layers")
        if store is not None and diff_id and not not_kept:
            not_kept = store.keep_record(RECORD_KIND, diff_id, layer.to_record())
            if not_kept:
                observer.note(f"what is found in the layers is not kept: {not_kept}")

    if wanted:
        observer.stage("scan", f"{total} of {len(description.diff_ids)} layers")
        source.scan_layers(wanted, done)
    return ImageFiles(description, [scanned[diff_id] for diff_id in description.diff_ids])


def _too_large(what: str, where: str) -> ScanError:
    return ScanError(
        what,
        code="layer-too-large",
        where=where,
        do="Look at what makes them; no image that is meant to be used has so many.",
    )
