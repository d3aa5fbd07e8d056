"""What distributions say was linked or copied into them (PEP 770), as items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from packageurl import PackageURL

from stackbuild.sbom.inventory import Evidence, Item, Kind
from stackbuild.scan.image_files import ImageFiles

_KINDS: dict[str, Kind] = {
    "framework": "framework",
    "container": "container",
    "operating-system": "operating-system",
}


def stated_components(
    files: ImageFiles, metadata_folder: str, evidence: Callable[[str], Evidence]
) -> tuple[Item, ...]:
    """The components that the SBOMs of one distribution name; their properties say which document does.

    Args:
        files: The image's files.
        metadata_folder: The distribution's dist-info.
        evidence: Where a path of the image comes from.
    """
    folder = f"{metadata_folder}/sboms"
    items: list[Item] = []
    for name in sorted(files.names_in(folder)):
        path = f"{folder}/{name}"
        rows = files.fact("bundled", path) or ()
        keys: list[str] = []
        made: list[Item] = []
        for kind, title, version, purl, sha256, licences, _ in rows:
            item = Item(
                _KINDS.get(kind, "library"),
                title,
                version,
                _purl(purl),
                location=f"/{path}",
                sha256=sha256,
                licences=tuple(licences),
                properties={"stated-by": f"/{path}"},
                evidence=(evidence(path),),
            )
            keys.append(item.key)
            made.append(item)
        for item, row in zip(made, rows, strict=True):
            items.append(replace(item, needs=tuple(sorted({keys[number] for number in row[6]} - {item.key}))))
    return tuple(items)


def _purl(text: str) -> PackageURL | None:
    """The purl as it is written; None for what is none."""
    try:
        return PackageURL.from_string(text)
    except ValueError:
        return None
