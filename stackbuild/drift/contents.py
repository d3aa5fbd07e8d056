"""Reading the content of those layers that a comparison needs; what was read before comes from the store."""

from __future__ import annotations

from collections.abc import Collection

from stackbuild.drift.layer_content import RECORD_KIND, ContentReader, LayerContent
from stackbuild.progress import Observer
from stackbuild.scan.sources.interface import ImageSource
from stackbuild.store.store import Store


def read_contents(
    source: ImageSource, wanted: Collection[str], *, store: Store | None, observer: Observer
) -> dict[str, LayerContent]:
    """The content of layers by diff ID.

    Args:
        source: The image they are of.
        wanted: Diff IDs; an empty one is that of a folder, of which nothing is kept.
        store: Keeps the content; None to keep nothing.
        observer: Told of each layer that is read.

    Raises:
        ScanError: A layer cannot be read.
    """
    found: dict[str, LayerContent] = {}
    for diff_id in wanted:
        record = store.record(RECORD_KIND, diff_id) if store is not None and diff_id else None
        if record is not None:
            found[diff_id] = LayerContent.from_record(record)
    missing = [diff_id for diff_id in wanted if diff_id not in found]
    begun = len(found)

    def done(diff_id: str, content: LayerContent) -> None:
        found[diff_id] = content
        observer.advance("contents", len(found) - begun, len(missing), "layers")
        if store is not None and diff_id:
            store.put_record(RECORD_KIND, diff_id, content.to_record())

    if missing:
        observer.stage("diff", f"content of {len(missing)} layers of {source.describe().name}")
        source.read_layers(missing, ContentReader(), done)
    return found
