"""Python distributions: METADATA, RECORD, direct_url.json; conda's records; pyvenv.cfg.

Core metadata 2.4; "Recording installed projects" (PyPA specifications) for RECORD.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import IO, Any

from stackbuild.scan.readers.text import MOST_FILES, at_most, decoded, lines, plain

_KEPT_ONCE = frozenset({"name", "version", "license-expression", "license", "summary", "requires-python"})
_KEPT_ALL = frozenset({"requires-dist", "provides-extra"})
_LONGEST_TEXT = 400


class MetadataReader:
    """METADATA of a dist-info, PKG-INFO of an egg-info, or an egg-info that is a file."""

    name = "metadata"
    file_names = frozenset({"METADATA", "PKG-INFO"})
    folder_names = frozenset({"dist-packages", "site-packages"})
    largest = 8 << 20

    def wants(self, path: str) -> bool:
        """Only inside a metadata folder; an egg-info file of its own beside the packages."""
        folder, _, name = path.rpartition("/")
        if name == "METADATA":
            return folder.endswith(".dist-info")
        if name == "PKG-INFO":
            return folder.endswith((".egg-info", "/EGG-INFO"))
        return name.endswith(".egg-info")

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """Header fields by lower-case name; of classifiers only licences."""
        found: dict[str, Any] = {}
        key = ""
        for line in lines(stream):
            if not line:
                break
            if line[0] in " \t":
                if key == "license" and not found[key].endswith("\n"):
                    found[key] += "\n"  # a whole text, of which the first line is kept
                continue
            name, colon, value = line.partition(":")
            key, value = name.lower() if colon else "", value.strip()[:_LONGEST_TEXT]
            if key in _KEPT_ONCE:
                found.setdefault(key, value)
            elif key in _KEPT_ALL or (key == "classifier" and value.startswith("License")):
                found.setdefault(key, []).append(value)
        return found


class RecordReader:
    """RECORD: what was installed, with hashes."""

    name = "record"
    file_names = frozenset({"RECORD"})
    folder_names: frozenset[str] = frozenset()
    largest = 64 << 20

    def wants(self, path: str) -> bool:
        """Only inside a dist-info."""
        return path.endswith(".dist-info/RECORD")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Rows as [path, hash, size]; a row that is not one is passed over."""
        text = decoded(stream.read(self.largest))
        rows = []
        try:
            for row in at_most(MOST_FILES, csv.reader(io.StringIO(text)), path):
                if row and row[0]:
                    rows.append([row[0], *(*row[1:3], "", "")[:2]])
        except csv.Error:
            return rows
        return rows


class JsonReader:
    """``direct_url.json`` (where an installation came from) and conda's records of packages."""

    name = "json"
    file_names = frozenset({"direct_url.json"})
    folder_names = frozenset({"conda-meta"})
    largest = 32 << 20
    _CONDA = ("name", "version", "build", "channel", "license", "subdir")

    def wants(self, path: str) -> bool:
        """Both kinds end alike."""
        return path.endswith(".json")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Of conda the fields that name the package; of a direct URL its url and hash."""
        try:
            value = json.loads(stream.read(self.largest))
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        if path.endswith("direct_url.json"):
            archive = value.get("archive_info")
            return {
                "url": plain(str(value.get("url", ""))),
                "hash": _archive_hash(archive) if isinstance(archive, dict) else "",
                "editable": isinstance(value.get("dir_info"), dict)
                and bool(value["dir_info"].get("editable")),
            }
        found = {key: plain(str(value.get(key, ""))) for key in self._CONDA}
        return found if found["name"] else None


def _archive_hash(archive: Mapping[str, Any]) -> str:
    """``sha256=HEX`` of a direct URL's archive (PyPA, "Direct URL Data Structure": ``hashes``, before it ``hash``)."""
    hashes = archive.get("hashes")
    if isinstance(hashes, dict) and "sha256" in hashes:
        return plain(f"sha256={hashes['sha256']}")
    return plain(str(archive.get("hash", "")))


class VenvReader:
    """``pyvenv.cfg``: marks a virtual environment and says which Python it stands on."""

    name = "venv"
    file_names = frozenset({"pyvenv.cfg"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 16

    def wants(self, path: str) -> bool:  # noqa: ARG002
        """Wherever it lies."""
        return True

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """Its keys and values."""
        pairs = (line.partition("=") for line in lines(stream))
        return {name.strip().lower(): value.strip() for name, equals, value in pairs if equals}
