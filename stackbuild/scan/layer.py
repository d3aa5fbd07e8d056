"""One layer as scanned: its paths, and what readers took out of its files. Kept in the store by diff ID."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stackbuild.scan.entries import FileEntry

# Counts up whenever a reader takes out something else or a record is written otherwise, so that older ones are not used.
FORMAT = 12
RECORD_KIND = f"scanned-layer-{FORMAT}"
# Past this a layer is a hostile one: the largest real images have some hundred thousand files. A layer at its limit takes
# about 1 GB.
MOST_ENTRIES = 2_000_000


@dataclass(frozen=True, slots=True)
class ScannedLayer:
    """What one layer adds, deletes and says.

    Attributes:
        entries: Path without leading slash → entry.
        deleted: Paths that the layer deletes (whiteouts).
        opaque: Directories whose lower content the layer hides.
        facts: Reader's name → path → what it took out of that file, as JSON values.
        problems: Sentences about what could not be read or was refused.
    """

    entries: Mapping[str, FileEntry]
    deleted: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(entry.size for entry in self.entries.values())

    def to_record(self) -> dict[str, Any]:
        """A record for the store; one text, which is read and written much faster than nested values."""
        value = {
            **_columns(self.entries),
            "deleted": self.deleted,
            "opaque": self.opaque,
            "facts": self.facts,
            "problems": self.problems,
        }
        text = json.dumps(value, separators=(",", ":"))
        return {"layer": text, "sha256": hashlib.sha256(text.encode()).hexdigest()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ScannedLayer:
        """The layer that :meth:`to_record` wrote."""
        value = json.loads(record["layer"])
        return cls(
            entries=_entries(value),
            deleted=tuple(value["deleted"]),
            opaque=tuple(value["opaque"]),
            facts=value["facts"],
            problems=tuple(value["problems"]),
        )


def kept_layer(record: Mapping[str, Any] | None) -> ScannedLayer | None:
    """The layer of a record as a store has it; None for none, or for one that somebody or a bad disk has changed."""
    text = record.get("layer") if record is not None else None
    if not isinstance(text, str) or record is None:
        return None
    if hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() != record.get("sha256"):
        return None
    return ScannedLayer.from_record(record)


# No path of a layer holds it: see ``entries.plain_path``. A text of all paths is read in half the time of a list.
_BETWEEN_PATHS = "//"


def _columns(entries: Mapping[str, FileEntry]) -> dict[str, Any]:
    """A layer's paths column by column: most entries differ in path and size alone, so the rest stands once.

    Raises:
        ValueError: A path is not as ``plain_path`` gives it: a mistake in the caller.
    """
    paths = _BETWEEN_PATHS.join(entries)
    if entries and paths.split(_BETWEEN_PATHS) != [*entries]:
        raise ValueError(f"a path holds {_BETWEEN_PATHS}, or begins or ends with a slash")
    alike: dict[tuple[str, int, int, int], int] = {}
    kinds = [alike.setdefault(entry[:4], len(alike)) for entry in entries.values()]
    return {
        "paths": paths,
        "alike": [*alike],
        "kinds": kinds,
        "sizes": [entry.size for entry in entries.values()],
        "links": [
            (number, entry.linkname) for number, entry in enumerate(entries.values()) if entry.linkname
        ],
    }


def _entries(value: Mapping[str, Any]) -> dict[str, FileEntry]:
    """The paths that :func:`_columns` wrote."""
    if not value["sizes"]:
        return {}
    links = [""] * len(value["sizes"])
    for number, linkname in value["links"]:
        links[number] = linkname
    alike = [map(column.__getitem__, value["kinds"]) for column in zip(*value["alike"], strict=True)]
    rows = zip(*alike, value["sizes"], links, strict=True)
    return dict(zip(value["paths"].split(_BETWEEN_PATHS), map(FileEntry._make, rows), strict=True))
