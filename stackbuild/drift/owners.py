"""Whose a file is, and what kind of file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from stackbuild.drift.layer_content import LayerContent
from stackbuild.scan.entries import FileEntry
from stackbuild.scan.scan import Scan

_PYC = re.compile(r"(?:(.*)/)?__pycache__/([^/]+?)\.(?:cpython|pypy)[^/]*\.pyc")
_DPKG_LIST = re.compile(r"var/lib/dpkg/info/([^/:]+)(?::[^/]+)?\.[a-z-]+")
_DEBIAN_DOCUMENTS = re.compile(r"usr/share/doc/([^/]+)(?:/.*)?")
# Debian merged these into /usr; lists of older packages still name them at the root.
_MERGED = ("bin/", "sbin/", "lib/", "lib32/", "lib64/", "libx32/")
_SPECIAL = {"dir": "directory", "symlink": "link", "other": "device"}
_LIBRARY = re.compile(r".*\.so(?:\.[0-9.]+)?")
_ENDS = {
    ".py": "python",
    ".pyc": "byte-code",
    ".pyi": "python",
    ".a": "static library",
    ".h": "header",
    ".hpp": "header",
    ".sh": "script",
    ".json": "text",
    ".txt": "text",
    ".md": "text",
    ".conf": "configuration",
}


class Owners:
    """Whose the files of an image are: Python distributions by RECORD, debs by dpkg's lists, rpms by their database.

    Args:
        scan: The image.
        contents: The content of those layers that were read; only their lists of debs are known in full,
            of other layers a deb's libraries are.
    """

    def __init__(self, scan: Scan, contents: Iterable[LayerContent]) -> None:
        self._scan = scan
        versions = {item.name: item.version for item in scan.packages if item.kind == "deb"}
        self._versions: Mapping[str, str] = versions
        self._debs: dict[str, str] = {}
        for listing, _, paths in scan.files.facts("deb-files"):
            match = _DPKG_LIST.fullmatch(listing)
            if match is not None:
                self._claim(paths, match[1])
        for content in contents:
            for name, listed in content.deb_files.items():
                self._claim(listed, name.partition(":")[0])

    def owner(self, path: str) -> str:
        """``NAME VERSION`` of the package whose file it is; empty where none is known."""
        source = _source_of(path)
        for candidate in (path, source):
            number = self._number(candidate) if candidate else None
            if number is not None:
                distribution = self._scan.python.distributions[number]
                return f"{distribution.key} {distribution.version}"
        for candidate in (path, source):
            name = self._deb(candidate) if candidate else ""
            if name in self._versions:
                return f"{name} {self._versions[name]}"
        for candidate in (path, source):
            number = self._scan.rpm_files.owner(candidate) if candidate else None
            if number is not None:
                package = self._scan.packages[number]
                return f"{package.name} {package.version}"
        return ""

    def _claim(self, paths: Iterable[str], name: str) -> None:
        """Note whose paths are; what several packages list is a folder of nobody's."""
        for path in paths:
            if self._debs.setdefault(path, name) != name:
                self._debs[path] = ""

    def _number(self, path: str) -> int | None:
        """The distribution of a file, or of a folder that has only files of one."""
        number = self._scan.python.owners.get(path)
        return self._folders.get(path) if number is None else number

    @cached_property
    def _folders(self) -> dict[str, int | None]:
        folders: dict[str, int | None] = {}
        for path, number in self._scan.python.owners.items():
            environment = self._scan.python.distributions[number].environment
            folder = path.rpartition("/")[0]
            while len(folder) > len(environment) and folders.get(folder, number) is not None:
                if folders.setdefault(folder, number) != number:
                    folders[folder] = None
                folder = folder.rpartition("/")[0]
        return folders

    def _deb(self, path: str) -> str:
        for pattern in (_DPKG_LIST, _DEBIAN_DOCUMENTS):
            match = pattern.fullmatch(path)
            if match is not None and match[1] in self._versions:
                return match[1]
        found = self._debs.get(path, "")
        if not found and path.startswith("usr/") and path[4:].startswith(_MERGED):
            found = self._debs.get(path[4:], "")
        return found


def file_kind(path: str, entry: FileEntry, scan: Scan) -> str:
    """A word for what a file is.

    Args:
        path: Without leading slash.
        entry: What is there.
        scan: The image.
    """
    if entry.kind in _SPECIAL:
        return _SPECIAL[entry.kind]
    name = path.rpartition("/")[2]
    if path.startswith("var/lib/dpkg/") or ".dist-info/" in path or ".egg-info" in path:
        return "package metadata"
    if path in scan.libraries:
        return "library" if scan.libraries[path].elf.kind == "library" or ".so" in name else "program"
    end = name[name.rfind(".") :] if "." in name else ""
    if end in _ENDS:
        return _ENDS[end]
    if _LIBRARY.fullmatch(name):
        return "library"
    if path.startswith("etc/"):
        return "configuration"
    if path.startswith(("usr/share/doc/", "usr/share/man/", "usr/share/info/")):
        return "documentation"
    return "script" if entry.mode & 0o111 or "/bin/" in f"/{path}" else "data"


def _source_of(path: str) -> str:
    """The source that byte-code was compiled from, of its folder the folder of the sources (PEP 3147); else empty."""
    if path.endswith("/__pycache__"):
        return path.rpartition("/")[0]
    match = _PYC.fullmatch(path)
    if match is None:
        return ""
    return f"{match[1]}/{match[2]}.py" if match[1] else f"{match[2]}.py"
