"""Files of the distribution: os-release, the databases of dpkg and apk, the loader's configuration."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from stackbuild.scan.readers.text import MOST_PACKAGES, at_most, decoded, fields, lines, number


class OsReleaseReader:
    """``os-release``(5): the fields that name the distribution."""

    name = "os-release"
    file_names = frozenset({"os-release"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 16
    _FIELDS = ("ID", "VERSION_ID", "VERSION_CODENAME", "PRETTY_NAME", "ID_LIKE")

    def wants(self, path: str) -> bool:
        """The two places of the file."""
        return path in ("etc/os-release", "usr/lib/os-release")

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002 - one interface
        """Field → value."""
        found: dict[str, str] = {}
        for line in lines(stream):
            name, equals, value = line.partition("=")
            if equals and name.strip() in self._FIELDS:
                try:
                    found[name.strip()] = " ".join(shlex.split(value))
                except ValueError:  # a quote without its end
                    found[name.strip()] = value.strip("\"' ")
        return found


class DpkgReader:
    """dpkg's status file, and the ``status.d`` files that distroless images have in its place."""

    name = "dpkg"
    file_names = frozenset({"status"})
    folder_names = frozenset({"status.d"})
    largest = 1 << 30
    _FIELDS = frozenset(
        {
            *("Package", "Version", "Architecture", "Source", "Status", "Installed-Size"),
            *("Depends", "Pre-Depends", "Provides"),
        }
    )

    def wants(self, path: str) -> bool:
        """dpkg's own folder; md5 lists beside the files of status.d are not package entries."""
        return path.startswith("var/lib/dpkg/status") and not path.endswith(".md5sums")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Installed packages: [name, version, architecture, source, KiB installed, licence, depends, provides]."""
        found = []
        for entry in at_most(MOST_PACKAGES, fields(stream, self._FIELDS), path):
            # status.d has no Status field: what is there is installed.
            if "Package" not in entry or not entry.get("Status", "installed").endswith("installed"):
                continue
            if entry.get("Status", "").endswith(("not-installed", "half-installed")):
                continue
            found.append(
                [
                    entry["Package"],
                    entry.get("Version", ""),
                    entry.get("Architecture", ""),
                    entry.get("Source", ""),
                    number(entry.get("Installed-Size", "")),
                    "",  # Debian keeps licences beside the package: CopyrightReader
                    ", ".join(entry[name] for name in ("Pre-Depends", "Depends") if name in entry),
                    entry.get("Provides", ""),
                ]
            )
        return found


class ApkReader:
    """Alpine's database of installed packages (apk-tools, ``lib/apk/db/installed``)."""

    name = "apk"
    file_names = frozenset({"installed"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 30

    def wants(self, path: str) -> bool:
        """Its place before and after the merge of /usr."""
        return path in ("lib/apk/db/installed", "usr/lib/apk/db/installed")

    def read(self, path: str, stream: IO[bytes]) -> Any:
        """Packages: [name, version, architecture, origin, bytes installed, licence, depends, provides]."""
        return [*at_most(MOST_PACKAGES, self._packages(stream), path)]

    def _packages(self, stream: IO[bytes]) -> Iterator[list[Any]]:
        current: dict[str, str] = {}
        for line in chain(lines(stream), ("",)):
            if line:
                key, colon, value = line.partition(":")
                if colon and key in "PVAoILDp" and len(key) == 1:
                    current[key] = value
            elif current.get("P"):
                texts = [*(current.get(key, "") for key in "PVAo")]
                further = [current.get(key, "") for key in "LDp"]
                yield [*texts, number(current.get("I", "")), *further]
                current = {}


class LoaderConfigReader:
    """``ld.so.conf``(5) and what it includes: folders that ldconfig indexes, as written."""

    name = "ld.so.conf"
    file_names = frozenset({"ld.so.conf"})
    folder_names = frozenset({"ld.so.conf.d"})
    largest = 1 << 20

    def wants(self, path: str) -> bool:
        """Only those in /etc."""
        return path == "etc/ld.so.conf" or (path.startswith("etc/ld.so.conf.d/") and path.endswith(".conf"))

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """The lines without comments."""
        stripped = (line.partition("#")[0].strip() for line in lines(stream))
        return [line for line in stripped if line]


class AccountsReader:
    """``passwd``(5): who the users of an image are."""

    name = "accounts"
    file_names = frozenset({"passwd"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 20

    def wants(self, path: str) -> bool:
        """The one that counts."""
        return path == "etc/passwd"

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """Rows of [name, uid, gid, home]; a line that is not one is passed over."""
        rows = (line.split(":") for line in lines(stream))
        return [
            [row[0], number(row[2]), number(row[3]), row[5]]
            for row in rows
            if len(row) == 7 and row[2].isdecimal() and row[3].isdecimal()
        ]


class TorchVersionReader:
    """``torch/version.py``: what an installed torch says of itself when its metadata is gone."""

    name = "torch-version"
    file_names = frozenset({"version.py"})
    folder_names: frozenset[str] = frozenset()
    largest = 1 << 16

    def wants(self, path: str) -> bool:
        """torch's own file only."""
        return path.endswith("-packages/torch/version.py")

    def read(self, path: str, stream: IO[bytes]) -> Any:  # noqa: ARG002
        """``version`` and ``cuda``; cuda is empty for a build without it."""
        found = {"version": "", "cuda": ""}
        for line in decoded(stream.read(self.largest)).splitlines():
            left, equals, value = line.partition("=")
            name = left.partition(":")[0].strip()
            if equals and name in ("__version__", "cuda"):
                text = value.strip().strip("'\"")
                found["cuda" if name == "cuda" else "version"] = "" if text == "None" else text
        return found
