"""What every format of a drift shows: a headline, the verdict in words, files by their owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.counting import counted
from stackbuild.digests import short_digest
from stackbuild.drift.model import Drift, DriftVerdict, FileChange, Side

_EXAMPLES = 3
NOBODY = "of no known package"
VERDICT_WORDS: dict[DriftVerdict, str] = {"same": "SAME", "change": "CHANGE", "drift": "DRIFT"}


@dataclass(frozen=True)
class OwnedFiles:
    """The files of one package that differ.

    Attributes:
        owner: The package, or words for none.
        changed: Their number.
        added: Number of files that came.
        removed: Number of files that went.
        examples: The first of them in path order.
    """

    owner: str
    changed: int
    added: int
    removed: int
    examples: tuple[FileChange, ...]

    @property
    def counts(self) -> str:
        """For example ``3 changed, 1 added``."""
        named = (("changed", self.changed), ("added", self.added), ("removed", self.removed))
        return ", ".join(f"{count:,} {word}" for word, count in named if count)


def owned_files(files: Sequence[FileChange], *, examples: int = _EXAMPLES) -> tuple[OwnedFiles, ...]:
    """The files that count, by owner, those with the most changed files first, those of nobody last.

    Args:
        files: What became of the files.
        examples: How many to show of each owner.
    """
    found: dict[str, list[FileChange]] = {}
    for file in files:
        if not file.noise:
            found.setdefault(file.owner.rpartition(" ")[0], []).append(file)
    groups = (
        OwnedFiles(
            owner=_owner(listed),
            changed=sum(file.change == "changed" for file in listed),
            added=sum(file.change == "added" for file in listed),
            removed=sum(file.change == "removed" for file in listed),
            # Content that changed says more than a thousand files that came with a package.
            examples=tuple(sorted(listed, key=lambda file: file.change != "changed")[:examples]),
        )
        for listed in found.values()
    )
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                group.owner == NOBODY,
                -group.changed,
                -(group.changed + group.added + group.removed),
                group.owner,
            ),
        )
    )


def _owner(files: Sequence[FileChange]) -> str:
    """``NAME VERSION`` of files of one package; where it moved, the version that went first."""
    if not files[0].owner:
        return NOBODY
    name = files[0].owner.rpartition(" ")[0]
    now = dict.fromkeys(file.owner.rpartition(" ")[2] for file in files if file.change != "removed")
    then = dict.fromkeys(file.owner.rpartition(" ")[2] for file in files if file.change == "removed")
    gone = [version for version in then if version not in now]
    return f"{name} {' → '.join(', '.join(versions) for versions in (gone, list(now)) if versions)}"


def outcome(drift: Drift) -> str:
    """In words what the exit code says."""
    if not drift.differs:
        return "no difference of content"
    details = "details unknown: the files of both could not be compared"
    counts = (
        (len(drift.pins), "pin"),
        (len(drift.packages), "package"),
        (sum(not file.noise for file in drift.files), "file"),
    )
    told = ", ".join(counted(count, word) for count, word in counts if count)
    if not told:
        return f"the digests differ; {details}"
    breaking = sum(pin.breaking for pin in drift.pins) + sum(item.breaking for item in drift.packages)
    alone = sum(count for count, _ in counts) == 1
    return (
        f"{told} differ{'s' if alone else ''}"
        + (f"; {breaking:,} may break users" if breaking else "")
        + (f"; {details}" if drift.undetailed else "")
    )


def side_text(side: Side) -> str:
    """One side in a line."""
    return " ".join(
        part for part in (side.name, f"({side.kind})", side.platform, short_digest(side.digest)) if part
    )


def file_text(file: FileChange) -> str:
    """One file in a line: path, change and what it was and is."""
    what = f" {', '.join(file.what)}" if file.what else ""
    values = " → ".join(value for value in (file.before, file.after) if value)
    return f"{file.path}: {file.change}{what} ({values})"
