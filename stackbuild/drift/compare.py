"""Comparing two images, locks or SBOMs: pins, packages and files."""

from __future__ import annotations

from stackbuild.drift.comparable_pins import comparable_pins
from stackbuild.drift.files import compare_files
from stackbuild.drift.findings import drift_findings
from stackbuild.drift.first_layer import first_layer
from stackbuild.drift.image_subject import image_subject
from stackbuild.drift.metadata import metadata_differences
from stackbuild.drift.model import Drift, Level
from stackbuild.drift.packages import compare_packages
from stackbuild.drift.pins import compare_pins
from stackbuild.drift.replaced import replaced_packages, with_replaced
from stackbuild.drift.subject import Subject
from stackbuild.errors import NotJudgedError
from stackbuild.progress import Observer, SilentObserver
from stackbuild.scan.scan import scan_of
from stackbuild.scan.scan_image import scan_image
from stackbuild.scan.sources.interface import ImageSource
from stackbuild.store.store import Store

LEVELS: tuple[Level, ...] = ("pins", "packages", "files")


def compare_images(
    before: ImageSource,
    after: ImageSource,
    *,
    store: Store | None = None,
    observer: Observer | None = None,
    level: Level = "files",
) -> Drift:
    """What differs between two images, whoever built them.

    Args:
        before: The older one, as ``scan.open_source.open_source`` gives it.
        after: The newer one.
        store: Keeps what was found in each layer, by diff ID; None to keep nothing.
        observer: Told of each layer that is read.
        level: The finest level to compare at.

    Raises:
        NotJudgedError: ``platforms-differ``.
        ScanError: A layer cannot be read.
    """
    told = observer or SilentObserver()
    sides = [image_side(source, store=store, observer=told) for source in (before, after)]
    return compare_subjects(*sides, store=store, observer=told, level=level)


def image_side(source: ImageSource, *, store: Store | None, observer: Observer) -> Subject:
    """An image as a side of :func:`compare_subjects`; its layers are scanned.

    Args:
        source: Where it is read from.
        store: Keeps what was found in each layer.
        observer: Told of each layer that is read.
    """
    return image_subject(source, scan_of(scan_image(source, observer, store=store)))


def compare_subjects(
    before: Subject,
    after: Subject,
    *,
    store: Store | None = None,
    observer: Observer | None = None,
    level: Level = "files",
) -> Drift:
    """What differs between two sides, of one kind or of two: an image can be held against its lock.

    Args:
        before: The older one.
        after: The newer one.
        store: Keeps the content of layers, by diff ID.
        observer: Told of each layer that is read.
        level: The finest level to compare at; what a side does not have is left out.

    Raises:
        NotJudgedError: ``platforms-differ``.
    """
    _require_one_platform(before, after)
    wanted = LEVELS[: LEVELS.index(level) + 1]
    levels = tuple(name for name in wanted if name in before.levels and name in after.levels)
    pins = compare_pins(*comparable_pins(before, after), only_common=before.side.kind != after.side.kind)
    drift = Drift(before=before.side, after=after.side, levels=levels, pins=pins)
    if "packages" in levels:
        packages = compare_packages(before.packages, after.packages)
        drift = drift.model_copy(update={"packages": packages})
    unread: tuple[str, ...] = ()
    if "files" in levels and before.image is not None and after.image is not None:
        found = compare_files(before.image, after.image, store=store, observer=observer or SilentObserver())
        replaced = replaced_packages(before.packages, after.packages, found.changes)
        drift = drift.model_copy(
            update={
                "files": found.changes,
                "packages": with_replaced(drift.packages, replaced),
                "metadata": metadata_differences(before.image, after.image, found),
            }
        )
        unread = found.unread
    unknown = tuple(dict.fromkeys((*before.unknown, *after.unknown)))
    drift = drift.model_copy(
        update={"unknown": unknown, "first_layer": first_layer(before, after, drift.packages)}
    )
    return drift.model_copy(update={"findings": drift_findings(drift, unread)})


def _require_one_platform(before: Subject, after: Subject) -> None:
    platforms = before.side.platform, after.side.platform
    if all(platforms) and platforms[0] != platforms[1]:
        raise NotJudgedError(
            f"one is for {platforms[0]}, the other for {platforms[1]}: everything differs, and it says nothing",
            code="platforms-differ",
            where=f"{before.side.name}, {after.side.name}",
            do="Name the same platform of both; --platform chooses one of an index or a lock.",
        )
