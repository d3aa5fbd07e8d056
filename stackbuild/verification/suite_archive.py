"""The in-image suite as one zip application, the same bytes each time."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from functools import cache

from stackbuild.shipped import shipped_folder

# The earliest time a zip can hold; any constant would do.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
_ENTRY = "__main__.py"
_PACKAGE = "suite"


@cache
def suite_archive() -> bytes:
    """The suite as a zip application: entries in name order, no compression, one fixed time."""
    folder = shipped_folder("verify")
    files = [folder / _ENTRY] + [
        path
        for path in sorted((folder / _PACKAGE).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _ZIP_EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, wherever it is written
            archive.writestr(entry, path.read_bytes())
    return raw.getvalue()


def suite_sha256() -> str:
    """sha256, in hex, of the suite's archive: its version for all purposes of comparison."""
    return hashlib.sha256(suite_archive()).hexdigest()


def suite_version() -> str:
    """The version that the suite gives itself, for people."""
    text = (shipped_folder("verify") / _PACKAGE / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^VERSION = "([^"]+)"', text, re.M)
    return match[1] if match else ""
