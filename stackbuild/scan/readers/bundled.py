"""SBOMs that a distribution brings along: what was linked or copied into it, as its builder states it.

PEP 770: files below ``sboms`` of a dist-info. Read are CycloneDX in JSON (versions 1.2 to 1.7), which auditwheel,
maturin and cargo-cyclonedx write, and SPDX in JSON (2.2, 2.3, and 3.0 as JSON-LD); of other formats a layer says that they
were not read.
"""

from __future__ import annotations

import json
from typing import IO, Any

from stackbuild.scan.readers.bundled_cyclonedx import cyclonedx_rows
from stackbuild.scan.readers.bundled_spdx import VERSIONS, spdx_rows
from stackbuild.scan.readers.bundled_spdx3 import is_spdx3, spdx3_rows


class BundledReader:
    """``NAME.dist-info/sboms/*.json``."""

    name = "bundled"
    file_names: frozenset[str] = frozenset()
    folder_names = frozenset({"sboms"})
    largest = 32 << 20

    def wants(self, path: str) -> bool:
        """Only directly in a dist-info's folder."""
        return path.rpartition("/")[0].endswith(".dist-info/sboms")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Components: [kind, name, version, purl, sha256, licences, rows that it needs]; None for another format."""
        try:
            document = json.loads(stream.read(self.largest))
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict):
            return None
        if document.get("bomFormat") == "CycloneDX":
            return cyclonedx_rows(document, path)
        if document.get("spdxVersion") in VERSIONS:
            return spdx_rows(document, path)
        return spdx3_rows(document, path) if is_spdx3(document) else None
