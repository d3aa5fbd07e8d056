"""The SBOM of a scanned image, kept in the store: the same image gives the same bytes, so they are written once.

The document holds no verdict and depends on no date, fact, option or site. Its key has all that it does depend on:

* the image: its configuration, its configuration's digest, its layers by diff ID and what made them;
* the digest that the caller knows where the source does not;
* the program: every file of this package as ``stat`` tells them apart, and the versions of Python and of the libraries
  that take part in the writing. Another version, or a changed file, writes the document anew.

Not in the key is the name that the image was read by; the document is the same by whatever name.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import stackbuild
from stackbuild.scan.scan import Scan
from stackbuild.store.store import Store

RECORD_KIND = "scan-sbom-1"
# What stands between an image's records and the bytes; a test holds it against what is imported.
LIBRARIES = (
    "boolean.py",
    "cyclonedx-python-lib",
    "license-expression",
    "packageurl-python",
    "packaging",
    "py-serializable",
    "pydantic",
    "sortedcontainers",
)


def kept_scan_sbom(scan: Scan, store: Store | None, *, config_digest: str = "") -> bytes:
    """The CycloneDX 1.6 JSON of a scanned image, as :func:`~stackbuild.sbom.scanned.scan_sbom` writes it.

    Args:
        scan: The image.
        store: Keeps the document; None to write it anew and keep nothing.
        config_digest: The configuration's digest, where the caller knows it and the scan's source may not.
    """
    # A folder that is no layer has no diff ID: nothing says what is in it but itself.
    if store is None or not all(scan.files.description.diff_ids):
        return _written(scan, config_digest)
    key = sbom_key(scan, config_digest, Path(stackbuild.__file__).parent)
    record = store.record(RECORD_KIND, key)
    if record is not None:
        document = str(record.get("sbom")).encode()
        if hashlib.sha256(document).hexdigest() == record.get("sha256"):
            return document
    document = _written(scan, config_digest)
    store.keep_record(
        RECORD_KIND, key, {"sbom": document.decode(), "sha256": hashlib.sha256(document).hexdigest()}
    )
    return document


def sbom_key(scan: Scan, config_digest: str, program: Path) -> str:
    """What an image's document depends on, as one hash in hex.

    Args:
        scan: The image; its layers are not looked at, their diff IDs say what is in them.
        config_digest: As for :func:`kept_scan_sbom`.
        program: The folder of this package.
    """
    description = scan.files.description
    value = {
        "config": description.config,
        "config-digests": [description.config_digest, config_digest],
        "layers": description.diff_ids,
        "commands": description.commands,
        "program": sorted(_files(program)),
        "python": sys.version,
        "libraries": {name: _version(name) for name in LIBRARIES},
    }
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _version(library: str) -> str:
    """A library's version; empty where it is not there, as one that a later release of another one does without."""
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _files(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """Path, size and times (ns) of each file of the program. No change leaves all of them as they were."""
    open_folders = [str(folder)]
    while open_folders:
        with os.scandir(open_folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        open_folders.append(entry.path)
                else:
                    status = entry.stat()
                    yield entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _written(scan: Scan, config_digest: str) -> bytes:
    # Takes long to import, and is not needed where the document is at hand.
    from stackbuild.sbom.scanned import scan_sbom

    return scan_sbom(scan, config_digest=config_digest)
