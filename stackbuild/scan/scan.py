"""A scan: everything that was found in one image, ready to be judged and written down."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from stackbuild.scan.contents.cuda import (
    CudaLibrary,
    DriverLibrary,
    cuda_family,
    cuda_libraries,
    driver_libraries,
)
from stackbuild.scan.contents.packages import OsRelease, SystemPackage, os_release, system_packages
from stackbuild.scan.contents.python import PythonContents, python_contents
from stackbuild.scan.contents.rpm_files import RpmFiles
from stackbuild.scan.contents.sizes import Saving, savings, size_by_owner
from stackbuild.scan.contents.unwanted import (
    FileSize,
    Leftover,
    Secret,
    large_files,
    leftovers,
    privileged_files,
    secrets,
)
from stackbuild.scan.elf_record import Library, library_of_row
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.loader import Loader

_GLIBC = re.compile(r"(?:\d+:)?(2\.\d+)")


@dataclass(frozen=True)
class Scan:
    """What an image holds. Parts are worked out when they are first asked for."""

    files: ImageFiles

    @property
    def name(self) -> str:
        """The image as the person named it."""
        return self.files.description.name

    @cached_property
    def os(self) -> OsRelease:
        """The distribution."""
        return os_release(self.files)

    @cached_property
    def packages(self) -> tuple[SystemPackage, ...]:
        """Packages of the distribution and of conda."""
        return system_packages(self.files)

    @cached_property
    def rpm_files(self) -> RpmFiles:
        """Whose the files are that rpm installed."""
        return RpmFiles(self.packages, self.files)

    @cached_property
    def python(self) -> PythonContents:
        """Python distributions and environments."""
        return python_contents(self.files)

    @cached_property
    def libraries(self) -> dict[str, Library]:
        """ELF files by path."""
        return {path: library_of_row(path, row) for path, _, row in self.files.facts("elf")}

    @cached_property
    def cuda(self) -> tuple[CudaLibrary, ...]:
        """CUDA libraries."""
        return cuda_libraries(self.files, self.libraries, self.python)

    @cached_property
    def driver(self) -> tuple[DriverLibrary, ...]:
        """Files with the names of the driver's libraries."""
        return driver_libraries(self.files, self.libraries)

    @cached_property
    def loader(self) -> Loader:
        """What the dynamic loader would find."""
        return Loader(self.files, self.libraries, self.files.description.environment)

    @cached_property
    def loaded_cuda(self) -> frozenset[str]:
        """Paths of the CUDA libraries that others load, or that lie where every program's libraries are found."""
        files = self.files
        searched = {
            files.resolve(folder) or folder for folder, _ in self.loader.searched_folders(self.machine)
        }
        reached = {item.path for item in self.cuda if item.path.rpartition("/")[0] in searched}
        for library in self.libraries.values():
            for name in library.elf.needed:
                if cuda_family(name) and (found := self.loader.find(name, library)) is not None:
                    reached.add(found.path)
        return frozenset(reached)

    @cached_property
    def secrets(self) -> tuple[Secret, ...]:
        """Keys, tokens and passwords."""
        return secrets(self.files, self.python)

    @cached_property
    def leftovers(self) -> tuple[Leftover, ...]:
        """What package managers left behind."""
        return leftovers(self.files)

    @cached_property
    def large_files(self) -> tuple[FileSize, ...]:
        """Files of 100 MB and more."""
        return large_files(self.files)

    @cached_property
    def privileged_files(self) -> tuple[FileSize, ...]:
        """Programs with the set-uid or set-gid bit."""
        return privileged_files(self.files)

    @cached_property
    def owners(self) -> dict[str, int]:
        """Bytes by owner, largest first."""
        return size_by_owner(self.files, self.python, self.packages, self.rpm_files)

    @cached_property
    def savings(self) -> tuple[Saving, ...]:
        """What could be saved, largest first."""
        return savings(self.files, self.cuda, self.leftovers, self.python)

    @property
    def glibc(self) -> str:
        """glibc's version as its package says it, for example ``2.36``; empty for none or unknown."""
        for package in self.packages:
            if package.name in ("libc6", "glibc"):
                match = _GLIBC.match(package.version)
                return match[1] if match else ""
        return ""

    @property
    def machine(self) -> str:
        """The machine of the image's platform as ELF files name it."""
        architecture = self.files.description.platform.partition("/")[2]
        return {"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}.get(architecture, architecture)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Sentences about what this scan cannot know, or could not read."""
        told = [problem for layer in self.files.layers for problem in layer.problems]
        databases = [
            path
            for path, _ in self.files.placed()
            if path.startswith(("var/lib/rpm/", "usr/lib/sysimage/rpm/"))
        ]
        if databases and not any(package.kind == "rpm" for package in self.packages):
            told.append("The rpm database has no packages that can be read; what is installed is not known.")
        if any(library.elf.static and library.elf.kind == "program" for library in self.libraries.values()):
            told.append("What is linked into programs statically is not known.")
        return tuple(dict.fromkeys(told))


def scan_of(files: ImageFiles) -> Scan:
    """The scan of an image's files."""
    return Scan(files)
