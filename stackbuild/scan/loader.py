"""Which file the dynamic loader takes for a library, as far as an image's files tell.

ld.so(8) of glibc 2.36: DT_RPATH (only without DT_RUNPATH; that of whatever loaded a library counts for it too),
LD_LIBRARY_PATH, DT_RUNPATH, the cache, the default folders. The cache is taken to hold what ldconfig would find
in the folders of ld.so.conf(5) now. A process that has loaded a library of the same SONAME already takes that
one: that is for the caller to know.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stackbuild.errors import ScanError
from stackbuild.scan.elf_record import Library
from stackbuild.scan.image_files import ImageFiles

# Debian and Ubuntu build these into the loader; others have the last four alone.
_TRIPLETS = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu", "i386": "i386-linux-gnu"}
_MOST_INCLUDES = 1024
# Bounds following RPATH from library to library in an image made to make that endless.
_MOST_LOADS = 20_000
# An image of torch, ONNX Runtime and all their CUDA needs 10,000; a search takes some ten microseconds.
_MOST_SEARCHES = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """Where the loader finds a library.

    Attributes:
        path: The file, links followed.
        by: ``RPATH``, ``LD_LIBRARY_PATH``, ``RUNPATH``, ``ld.so.conf`` or ``default``.
        folder: The folder as it is searched.
    """

    path: str
    by: str
    folder: str


class Loader:
    """The loader of one image.

    Args:
        files: The image's files.
        libraries: Its ELF files by path.
        environment: Its environment variables.
    """

    def __init__(
        self, files: ImageFiles, libraries: Mapping[str, Library], environment: Mapping[str, str]
    ) -> None:
        self._files, self._libraries = files, libraries
        self.library_path = (
            tuple(environment.get("LD_LIBRARY_PATH", "").split(":"))
            if environment.get("LD_LIBRARY_PATH")
            else ()
        )
        self.configured = _configured(files)
        self._known: dict[tuple[str, str, str], Found | None] = {}
        self._searches = 0

    def find(self, name: str, user: Library) -> Found | None:
        """What ``user`` gets for a DT_NEEDED entry; None when nothing is found for its machine.

        Raises:
            ScanError: ``layer-too-large``: the image was made so that searching does not end.
        """
        if "/" in name:
            return self._in_folder(name.rpartition("/")[0], name.rpartition("/")[2], "path", user)
        elf = user.elf
        found = (
            self._by_rpath(name, user)
            or self._in_folders(_all_expanded(self.library_path, user), name, "LD_LIBRARY_PATH", user)
            or self._in_folders(_all_expanded(elf.runpath, user), name, "RUNPATH", user)
        )
        if found is not None or elf.nodeflib:
            return found
        key = (name, elf.machine, str(elf.bits))
        if key not in self._known:
            self._known[key] = self._by_default(name, user)
        return self._known[key]

    def find_by_own_paths(self, name: str, user: Library) -> Found | None:
        """What ``user`` would get by RPATH and RUNPATH alone: what it was linked to find."""
        return self._by_rpath(name, user) or self._in_folders(
            _all_expanded(user.elf.runpath, user), name, "RUNPATH", user
        )

    def _by_rpath(self, name: str, user: Library) -> Found | None:
        if user.elf.runpath:
            return None
        folders = (*_all_expanded(user.elf.rpath, user), *self._inherited.get(user.path, ()))
        return self._in_folders(folders, name, "RPATH", user)

    @cached_property
    def _inherited(self) -> dict[str, tuple[str, ...]]:
        """Folders of DT_RPATH that a library gets from those that load it, by its path."""
        got: dict[str, tuple[str, ...]] = {}
        pending = [
            (library, _all_expanded(library.elf.rpath, library))
            for library in self._libraries.values()
            if library.elf.rpath and not library.elf.runpath
        ]
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for _ in range(_MOST_LOADS):
            if not pending:
                break
            library, folders = pending.pop()
            for name in library.elf.needed:
                found = self._in_folders(folders, name, "RPATH", library)
                child = self._libraries.get(found.path) if found is not None else None
                if child is None or child.elf.runpath or (child.path, folders) in seen:
                    continue
                seen.add((child.path, folders))
                got[child.path] = tuple(dict.fromkeys((*got.get(child.path, ()), *folders)))
                pending.append((child, folders))
        return got

    def on_default_path(self, name: str, machine_of: Library) -> Found | None:
        """What any program gets that has no paths of its own."""
        folders = [_expanded(folder, "", machine_of.elf.bits) for folder in self.library_path]
        return self._in_folders(folders, name, "LD_LIBRARY_PATH", machine_of) or self._by_default(
            name, machine_of
        )

    def searched_folders(self, machine: str) -> tuple[tuple[str, str], ...]:
        """Every folder that programs of this machine search, and why, in order; links are not followed."""
        return (
            *((folder.strip("/"), "LD_LIBRARY_PATH") for folder in self.library_path),
            *((folder.strip("/"), "ld.so.conf") for folder in self.configured),
            *((folder, "default") for folder in _defaults(machine)),
        )

    def _by_default(self, name: str, user: Library) -> Found | None:
        return self._in_folders(self.configured, name, "ld.so.conf", user) or self._in_folders(
            _defaults(user.elf.machine), name, "default", user
        )

    def _in_folders(self, folders: Iterable[str], name: str, by: str, user: Library) -> Found | None:
        for folder in folders:
            found = self._in_folder(folder, name, by, user)
            if found is not None:
                return found
        return None

    def _in_folder(self, folder: str, name: str, by: str, user: Library) -> Found | None:
        self._searches += 1
        if self._searches > _MOST_SEARCHES:
            raise ScanError(
                f"its libraries name more than {_MOST_SEARCHES:,} places to search",
                code="layer-too-large",
                where=user.path,
                do="Look at what makes them; no image that is meant to be used has so many.",
            )
        path = self._files.resolve(f"{folder.strip('/')}/{name}")
        if path is None:
            return None
        library = self._libraries.get(path)
        # The loader passes over files of another machine or class; a file that is no ELF file stops it.
        if library is not None and (library.elf.machine, library.elf.bits) != (
            user.elf.machine,
            user.elf.bits,
        ):
            return None
        return Found(path, by, folder)


def _expanded(folder: str, origin: str, bits: int) -> str:
    """``$ORIGIN``, ``$LIB`` and ``$PLATFORM`` filled in; an empty folder is the working directory, taken as ``/``."""
    lib = "lib64" if bits == 64 else "lib"
    for name, value in (("ORIGIN", f"/{origin}"), ("LIB", lib)):
        folder = folder.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return folder


def _all_expanded(folders: Sequence[str], library: Library) -> tuple[str, ...]:
    origin = library.path.rpartition("/")[0]
    return tuple(_expanded(folder, origin, library.elf.bits) for folder in folders)


def _defaults(machine: str) -> Sequence[str]:
    triplet = _TRIPLETS.get(machine)
    own = (f"lib/{triplet}", f"usr/lib/{triplet}") if triplet else ()
    return (*own, "lib64", "usr/lib64", "lib", "usr/lib")


def _configured(files: ImageFiles) -> tuple[str, ...]:
    folders: list[str] = []
    pending = ["etc/ld.so.conf"]
    seen: set[str] = set()
    while pending and len(seen) < _MOST_INCLUDES:
        path = pending.pop(0)
        if path in seen:
            continue
        seen.add(path)
        following: list[str] = []
        for line in files.fact("ld.so.conf", files.resolve(path) or path) or ():
            words = line.split()
            if words[0] == "include":
                for pattern in words[1:]:
                    following.extend(_matching(files, pattern))
            elif words[0] != "hwcap":
                folders.extend(folder for folder in line.replace(",", " ").split() if folder.startswith("/"))
        pending = following + pending
    return tuple(dict.fromkeys(folders))


def _matching(files: ImageFiles, pattern: str) -> list[str]:
    absolute = pattern if pattern.startswith("/") else f"/etc/{pattern}"
    folder, _, name = absolute[1:].rpartition("/")
    return [f"{folder}/{item}" for item in sorted(files.names_in(folder)) if fnmatch.fnmatchcase(item, name)]
