"""The SBOM of any image, from its scan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from stackbuild import __version__
from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.counting import counted, some_of
from stackbuild.sbom.cyclonedx_writer import write_cyclonedx
from stackbuild.sbom.inventory import Item
from stackbuild.sbom.rpm_graph import unread_conditions
from stackbuild.sbom.scan_inventory import missing_metadata, scan_inventory
from stackbuild.scan.scan import Scan
from stackbuild.scan.sources.interface import ImageDescription

_EPOCH = "1970-01-01T00:00:00+00:00"
_OCI = "org.opencontainers.image"
_SHOWN = 10


def scan_sbom(scan: Scan, *, config_digest: str = "") -> bytes:
    """Write the CycloneDX 1.6 JSON of a scanned image.

    The same image gives the same bytes, from wherever and by whatever name it was read: the document names
    the image by its own labels and its configuration's digest. An engine that does not have the
    configuration's own bytes (Docker's containerd store) cannot give that digest; then it is not named.

    Args:
        scan: The image.
        config_digest: The configuration's digest, where the caller knows it and the scan's source may not.
    """
    description = scan.files.description
    labels = _labels_that_hold(description)
    inventory = scan_inventory(scan)
    config_digest = config_digest or description.config_digest
    identity = config_digest or _digest_of_layers(description.diff_ids)
    properties = {
        "platform": description.platform,
        "config-digest": config_digest,
        "layers": " ".join(description.diff_ids),
        "base": labels.get(f"{_OCI}.base.name", ""),
        "base-digest": labels.get(f"{_OCI}.base.digest", ""),
    }
    root = Item(
        "container",
        labels.get(f"{_OCI}.title") or "image",
        labels.get(f"{_OCI}.version") or identity,
        properties={name: value for name, value in properties.items() if value},
        needs=inventory.top,
    )
    return write_cyclonedx(
        root,
        inventory.items,
        created=_created(description.config.get("created")),
        tool_version=__version__,
        unknown=tuple(dict.fromkeys(_unknown(scan))),
    )


def _unknown(scan: Scan) -> Iterator[str]:
    yield from scan.unknown
    for environment, names in missing_metadata(scan).items():
        yield (
            f"Modules in /{environment} without metadata, not listed as components: {some_of(names, _SHOWN)}."
        )
    if not scan.os.id:
        yield "The distribution is not known: there is no os-release."
    kinds = {package.kind for package in scan.packages}
    if "conda" in kinds:
        yield "Dependencies between conda packages are not read."
    damaged = sum(package.kind == "rpm" and package.files is None for package in scan.packages)
    if damaged:
        yield f"Files and dependencies of {counted(damaged, 'rpm')} are not known: their entries in the database are damaged."
    unread = unread_conditions(scan.packages)
    if unread:
        yield f"{counted(unread, 'condition')} of rpms could not be read, and what they lead to is left out."
    silent = sum(package.kind == "deb" and not package.licences for package in scan.packages)
    if silent:
        yield f"Licences of {silent} debs are not known: they have no machine-readable copyright file in the image."
    if kinds - {"deb", "rpm"}:
        yield "Which files belong to apk or conda packages is not read; only CUDA's libraries are listed of those."
    yield "What a package was downloaded as is not recorded in an image, so hashes are given only where it says them."
    yield "Extras asked for at install time are not recorded; those that installed packages ask for are evaluated."


def _labels_that_hold(description: ImageDescription) -> Mapping[str, str]:
    """The image's labels; none for one that was built on top of a stack and inherits that stack's."""
    labels = description.labels
    if PINS_LABEL in labels and pins_that_hold(labels, description.diff_ids) is None:
        return {}
    return labels


def _created(stated: object) -> str:
    """The configuration's time in RFC 3339 with a zone; the epoch where it has none that can be read."""
    try:
        moment = datetime.fromisoformat(str(stated or _EPOCH))
    except ValueError:
        return _EPOCH
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _digest_of_layers(diff_ids: tuple[str, ...]) -> str:
    return f"layers-sha256:{hashlib.sha256(' '.join(diff_ids).encode()).hexdigest()}"
