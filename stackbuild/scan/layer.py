"""One layer as scanned: its paths, and what readers took out of its files. Kept in the store by diff ID."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stackbuild.scan.entries import FileEntry

# Counts up whenever a reader takes out something else, so that older records are not used.
FORMAT = 6
RECORD_KIND = f"scanned-layer-{FORMAT}"


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
            "entries": self.entries,
            "deleted": self.deleted,
            "opaque": self.opaque,
            "facts": self.facts,
            "problems": self.problems,
        }
        return {"layer": json.dumps(value, separators=(",", ":"))}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ScannedLayer:
        """The layer that :meth:`to_record` wrote."""
        value = json.loads(record["layer"])
        return cls(
            entries={path: FileEntry._make(row) for path, row in value["entries"].items()},
            deleted=tuple(value["deleted"]),
            opaque=tuple(value["opaque"]),
            facts=value["facts"],
            problems=tuple(value["problems"]),
        )
