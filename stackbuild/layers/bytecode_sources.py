"""Which Python sources a layer holds, and which wheel or package each belongs to."""

from __future__ import annotations

import csv
import posixpath
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# Where each kind of source lies; scripts and data elsewhere are never imported.
WHEEL_FOLDER = "opt/venv/lib/"
STDLIB_FOLDER = "usr/lib/python3"

_DPKG_LISTS = "var/lib/dpkg/info/"


@dataclass(frozen=True)
class Sources:
    """The sources of some layers.

    Attributes:
        jobs: Name of the wheel or package, and its sources in path order; jobs in name order. Paths have no
            leading slash. Sources that nobody lists are the job of the empty name.
    """

    jobs: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def count(self) -> int:
        """How many sources there are."""
        return sum(len(paths) for _, paths in self.jobs)


def find_sources(layers: Sequence[Path], folder: str, *, links: bool = False) -> Sources:
    """List the sources of layers below ``folder``, by the wheel (RECORD) or package (dpkg's lists) that owns them.

    Args:
        layers: Layer tars.
        folder: A prefix of paths, ``WHEEL_FOLDER`` or ``STDLIB_FOLDER``.
        links: Take symbolic links for sources as well.
    """
    found: set[str] = set()
    owners: dict[str, str] = {}
    for layer in layers:
        with tarfile.open(layer, mode="r:") as archive:
            for member in archive:
                if _is_source(member, folder, links=links):
                    found.add(member.name)
                elif member.isreg() and (listed := _listed(archive, member)) is not None:
                    owner, paths = listed
                    for path in paths:
                        # A path that two wheels share belongs to the first by name, whichever was read first.
                        owners[path] = min(owners.get(path, owner), owner)
    jobs: dict[str, list[str]] = {}
    for path in sorted(found):
        jobs.setdefault(owners.get(path, ""), []).append(path)
    return Sources(tuple((name, tuple(paths)) for name, paths in sorted(jobs.items())))


def read_sources(layers: Sequence[Path], folder: str) -> Iterator[tuple[str, bytes]]:
    """Absolute path and content of each source of the layers below ``folder``."""
    for layer in layers:
        with tarfile.open(layer, mode="r:") as archive:
            for member in archive:
                if _is_source(member, folder, links=False):
                    content = archive.extractfile(member)
                    assert content is not None  # a regular file has content
                    yield f"/{member.name}", content.read()


def _is_source(member: tarfile.TarInfo, folder: str, *, links: bool) -> bool:
    return (
        (member.isreg() or (links and member.issym()))
        and member.name.startswith(folder)
        and member.name.endswith(".py")
        and "/__pycache__/" not in member.name
    )


def _listed(archive: tarfile.TarFile, member: tarfile.TarInfo) -> tuple[str, list[str]] | None:
    """The owner and its paths, when the member is a wheel's RECORD or a package's list."""
    folder, _, name = member.name.rpartition("/")
    is_record = name == "RECORD" and folder.endswith(".dist-info")
    is_list = member.name.startswith(_DPKG_LISTS) and name.endswith(".list")
    if not (is_record or is_list):
        return None
    content = archive.extractfile(member)
    lines = content.read().decode(errors="surrogateescape").splitlines() if content else []
    if is_list:
        return name.removesuffix(".list"), [_usr_merged(line) for line in lines]
    root = posixpath.dirname(folder)
    rows = [row[0] for row in csv.reader(lines) if row]
    return posixpath.basename(folder), [posixpath.normpath(posixpath.join(root, row)) for row in rows]


def _usr_merged(line: str) -> str:
    path = line.lstrip("/")
    return f"usr/{path}" if path.startswith("lib/") else path
