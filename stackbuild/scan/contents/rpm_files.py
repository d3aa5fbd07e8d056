"""Whose the files of an image are that rpm installed: its database lists those of every package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
        self._brought: dict[str, dict[str, list[int]]] = {}
        self._ghosts: dict[str, dict[str, list[int]]] = {}
        for number, package in enumerate(packages):
            self._list(number, package.files or {}, self._brought)
            self._list(number, package.ghosts, self._ghosts)

    def __bool__(self) -> bool:
        return bool(self._brought)

    def packages_of(self, path: str) -> Sequence[int]:
        """The packages that list a path, ghosts too, by their numbers; its folder may be named through a link."""
        folder, _, name = path.rpartition("/")
        real = self._real_folder(folder)
        return _numbers(self._brought, real, name) or _numbers(self._ghosts, real, name)

    def owner(self, path: str) -> int | None:
        """The package that brings a path; None for what nobody does, and for what packages of several names list."""
        folder, _, name = path.rpartition("/")
        found = _numbers(self._brought, folder, name)
        names = {self._packages[number].name for number in found}
        return found[0] if len(names) == 1 else None

    def _list(
        self, number: int, listed: Mapping[str, Sequence[str]], index: dict[str, dict[str, list[int]]]
    ) -> None:
        for folder, names in listed.items():
            there = index.setdefault(self._real_folder(folder), {})
            for name in names:
                there.setdefault(name, []).append(number)

    def _real_folder(self, folder: str) -> str:
        if folder not in self._real:
            deep = folder.count("/") > _DEEPEST
            self._real[folder] = folder if deep else self._files.resolve(folder) or folder
        return self._real[folder]


def _numbers(index: Mapping[str, Mapping[str, Sequence[int]]], folder: str, name: str) -> Sequence[int]:
    there = index.get(folder)
    return there.get(name, ()) if there is not None else ()
