"""Whose the files of an image are that rpm installed: its database lists those of every package."""

from __future__ import annotations

from collections.abc import Sequence

from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.image_files import ImageFiles

# Deeper folders than any package has are looked for where they are named, and not through links.
_DEEPEST = 128


class RpmFiles:
    """The rpms that list a path; what they list may lie behind links, as ``/lib64`` does since the merge of /usr.

    Args:
        packages: The image's packages, of all kinds.
        files: Its files.
    """

    def __init__(self, packages: Sequence[SystemPackage], files: ImageFiles) -> None:
        self._packages = packages
        self._files = files
        self._real: dict[str, str] = {}
        self._by_folder: dict[str, dict[str, list[int]]] = {}
        for number, package in enumerate(packages):
            for folder, names in (package.files or {}).items():
                there = self._by_folder.setdefault(self._real_folder(folder), {})
                for name in names:
                    there.setdefault(name, []).append(number)

    def __bool__(self) -> bool:
        return bool(self._by_folder)

    def packages_of(self, path: str) -> Sequence[int]:
        """The packages that list a path, by their numbers; its folder may be named through a link."""
        folder, _, name = path.rpartition("/")
        return self._listing(folder, name) or self._listing(self._real_folder(folder), name)

    def owner(self, path: str) -> int | None:
        """The package a path belongs to; None for nobody's, and for what packages of several names list."""
        folder, _, name = path.rpartition("/")
        found = self._listing(folder, name)
        names = {self._packages[number].name for number in found}
        return found[0] if len(names) == 1 else None

    def _listing(self, folder: str, name: str) -> Sequence[int]:
        there = self._by_folder.get(folder)
        return there.get(name, ()) if there is not None else ()

    def _real_folder(self, folder: str) -> str:
        if folder not in self._real:
            deep = folder.count("/") > _DEEPEST
            self._real[folder] = folder if deep else self._files.resolve(folder) or folder
        return self._real[folder]
