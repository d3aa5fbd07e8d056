"""Holding a layer's files against the RECORDs in it, while both are at hand.

Hashes of files that a RECORD of the same layer confirms are not kept, but for libraries, which an SBOM lists;
of the others they are, so that a RECORD in another layer can be held against them when the image is put together.
"""

from __future__ import annotations

import binascii
import posixpath
from collections.abc import Mapping
from typing import Any

from stackbuild.scan.entries import FileEntry
from stackbuild.scan.examine import ELF, SHA256


def settle_records(entries: Mapping[str, FileEntry], facts: dict[str, dict[str, Any]]) -> None:
    """Replace the rows of each RECORD by the paths it names and those of them that are still open.

    Afterwards a RECORD's value is ``{"paths": "one a line", "open": [[path, sha256 in hex or ""]]}``, and the
    hashes that were confirmed are gone from the facts.
    """
    hashes = facts.get(SHA256, {})
    confirmed: set[str] = set()
    for record, rows in facts.get("record", {}).items():
        root = record.rsplit("/", 2)[0]
        paths: list[str] = []
        unsettled: list[list[str]] = []
        for name, stated, size in rows:
            path = posixpath.normpath(f"/{name}" if name.startswith("/") else f"/{root}/{name}")[1:]
            paths.append(path)
            wanted = hex_of(stated)
            entry = entries.get(path)
            if entry is not None and entry.kind in ("file", "hardlink"):
                if not stated or path == record:
                    continue
                if not entry.size and entry.kind == "file" and size in ("", "0"):
                    continue
                if wanted and hashes.get(path) == wanted:
                    confirmed.add(path)
                    continue
            unsettled.append([path, wanted])
        facts["record"][record] = {"paths": "\n".join(paths), "open": unsettled}
    for path in confirmed - facts.get(ELF, {}).keys():
        del hashes[path]


def hex_of(stated: str) -> str:
    """RECORD's ``sha256=URLSAFE_BASE64`` in hex; empty for another algorithm or none."""
    algorithm, _, value = stated.partition("=")
    if algorithm != "sha256":
        return ""
    try:
        return binascii.a2b_base64(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4)).hex()
    except ValueError:
        return ""
