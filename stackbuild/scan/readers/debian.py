"""What Debian keeps beside dpkg's status: which libraries a package brings, its licences, what was asked for."""

from __future__ import annotations

import re
from typing import IO, Any

from stackbuild.scan.readers.text import MOST_FILES, at_most, fields, lines

_FORMAT = re.compile(
    r"Format(?:-Specification)?:.*(?:copyright-format|dep\.debian\.net|DEP-?5)", re.IGNORECASE
)
_NAME_OF_LIST = re.compile(r"var/lib/dpkg/info/([^/:]+)(?::([^/]+))?\.list")


class DebFilesReader:
    """``info/NAME.list`` of dpkg: the shared libraries among the files of a package."""

    name = "deb-files"
    file_names: frozenset[str] = frozenset()
    folder_names = frozenset({"info"})
    largest = 64 << 20

    def wants(self, path: str) -> bool:
        """dpkg's own folder."""
        return path.startswith("var/lib/dpkg/info/") and path.endswith(".list")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Paths without leading slash; only those whose name is a library's."""
        libraries = (line[1:] for line in lines(stream) if ".so" in line.rpartition("/")[2])
        return [*at_most(MOST_FILES, libraries, path)]


class CopyrightReader:
    """``/usr/share/doc/NAME/copyright`` (Debian policy 4.6, 12.5): the licences it names."""

    name = "copyright"
    file_names = frozenset({"copyright"})
    folder_names: frozenset[str] = frozenset()
    largest = 4 << 20

    def wants(self, path: str) -> bool:
        """Directly in a package's folder."""
        return path.startswith("usr/share/doc/") and path.count("/") == 4

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """Short names of the licences of a machine-readable file (copyright-format 1.0); of others none."""
        first = stream.readline(1 << 12)
        if _FORMAT.match(first.decode("utf-8", "replace")) is None:
            return []
        return sorted(
            {entry["License"] for entry in fields(stream, frozenset({"License"})) if entry.get("License")}
        )


class ExtendedStatesReader:
    """``extended_states`` of apt: which packages came only because others needed them."""

    name = "apt-automatic"
    file_names = frozenset({"extended_states"})
    folder_names: frozenset[str] = frozenset()
    largest = 64 << 20

    def wants(self, path: str) -> bool:
        """apt's own folder."""
        return path == "var/lib/apt/extended_states"

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """Names of the packages that are marked as installed automatically."""
        wanted = frozenset({"Package", "Auto-Installed"})
        return sorted(
            {
                entry["Package"]
                for entry in fields(stream, wanted)
                if entry.get("Auto-Installed") == "1" and "Package" in entry
            }
        )


def package_of_list(path: str) -> tuple[str, str]:
    """Name and architecture of the package whose ``.list`` this is; the architecture is empty where not said."""
    match = _NAME_OF_LIST.fullmatch(path)
    return (match[1], match[2] or "") if match else ("", "")
