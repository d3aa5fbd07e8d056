"""Native libraries as items: those that a wheel or package brings along, and those that nobody owns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stackbuild.sbom.inventory import Evidence, Item
from stackbuild.sbom.system_graph import SystemGraph
from stackbuild.scan.contents.cuda import is_driver_name
from stackbuild.scan.elf_record import Library
from stackbuild.scan.scan import Scan

# PEP 3149: extension modules of CPython bear its tag; they are part of the distribution, not a library.
_EXTENSION = re.compile(r"\.(?:cpython-[^.]*|abi3|pypy[^.]*)(?:\.so)$")
_NUMBER = re.compile(r"\d+")


class NativeLibraries:
    """The libraries of an image that its SBOM names.

    Named is every library that a distribution brings; of packages of the system those of CUDA and those
    with GPU code; of files without owner every library where the image says who owns what, else CUDA's.

    Args:
        scan: The image.
        system: Whose its libraries are.
    """

    def __init__(self, scan: Scan, system: SystemGraph) -> None:
        self._scan, self._system = scan, system
        self._cuda = {item.path: item for item in scan.cuda}
        self._conda = {
            item.database.partition("conda-meta/")[0] for item in scan.packages if item.kind == "conda"
        }
        self._by_distribution: dict[int, list[Library]] = {}
        for path, library in scan.libraries.items():
            owner = scan.python.owners.get(path)
            if owner is not None:
                self._by_distribution.setdefault(owner, []).append(library)
        self._items = {
            path: self._item(library) for path, library in scan.libraries.items() if self._is_named(library)
        }

    def of_distribution(self, number: int, keys: Mapping[str, str]) -> tuple[Item, ...]:
        """Items of the libraries that a distribution brings; their needs are of ``keys``, by path."""
        paths = (item.path for item in self.files_of_distribution(number) if item.path in self._items)
        return self._with_needs(paths, keys)

    def of_package(self, number: int, keys: Mapping[str, str]) -> tuple[Item, ...]:
        """Items of the libraries that a package of the system brings."""
        return self._with_needs((path for path in self._items if self._package(path) == number), keys)

    def of_nobody(self, keys: Mapping[str, str]) -> tuple[Item, ...]:
        """Items of the libraries that nobody owns."""
        owners = self._scan.python.owners
        found = (path for path in self._items if path not in owners and self._package(path) is None)
        return self._with_needs(found, keys)

    def keys(self) -> dict[str, str]:
        """Keys of all items, by path."""
        return {path: item.key for path, item in self._items.items()}

    def needed_by(self, paths: Iterable[str], keys: Mapping[str, str]) -> tuple[str, ...]:
        """Keys of what libraries load (DT_NEEDED), as the loader would find it."""
        found: set[str] = set()
        for path in paths:
            library = self._scan.libraries[path]
            for name in library.elf.needed:
                there = self._scan.loader.find(name, library)
                if there is not None and there.path in keys:
                    found.add(keys[there.path])
        return tuple(sorted(found))

    def extension_modules(self, number: int) -> list[str]:
        """Paths of the ELF files of a distribution that are not items of their own."""
        return [item.path for item in self.files_of_distribution(number) if item.path not in self._items]

    def files_of_distribution(self, number: int) -> Sequence[Library]:
        """The ELF files of a distribution."""
        return self._by_distribution.get(number, ())

    def _with_needs(self, paths: Iterable[str], keys: Mapping[str, str]) -> tuple[Item, ...]:
        items = []
        for path in paths:
            item = self._items[path]
            needs = tuple(need for need in self.needed_by([path], keys) if need != item.key)
            items.append(replace(item, needs=needs))
        return tuple(sorted(items, key=lambda item: item.key))

    def _package(self, path: str) -> int | None:
        return None if path in self._scan.python.owners else self._system.owner(path)

    def _is_named(self, library: Library) -> bool:
        path, elf = library.path, library.elf
        if path in self._cuda or library.gpu is not None:
            return True
        if elf.kind != "library" or not (elf.soname or library.name.startswith("lib")):
            return False
        if _EXTENSION.search(library.name) or ".so" not in library.name:
            return False
        if path in self._scan.python.owners:
            return True
        if self._system.owner(path) is not None or any(path.startswith(prefix) for prefix in self._conda):
            return False
        return self._system.knows_owners or is_driver_name(library.name)

    def _item(self, library: Library) -> Item:
        path, files = library.path, self._scan.files
        placed = files.get(path)
        cuda = self._cuda.get(path)
        measured = files.fact("sha256", path)
        layer = files.description.diff_ids[placed.layer] if placed is not None else ""
        properties = {
            "soname": library.elf.soname,
            "build-id": library.elf.build_id,
            "cuda-library": cuda.family if cuda else "",
            **gpu_properties([library]),
        }
        return Item(
            "library",
            library.name,
            cuda.version if cuda else library.name.partition(".so.")[2],
            location=f"/{path}",
            sha256=str(measured or ""),
            properties={name: value for name, value in properties.items() if value},
            evidence=(Evidence(f"/{path}", layer),),
        )


def gpu_properties(libraries: Sequence[Library]) -> dict[str, str]:
    """The architectures that libraries carry GPU code for, as properties; empty ones are left out."""
    codes = [library.kernels for library in libraries if library.kernels is not None]
    found = {
        "gpu-binaries": _joined(name for code in codes for name, _ in code.cubins),
        "gpu-ptx": _joined(name for code in codes for name, _ in code.ptx),
        "gpu-intermediate": _joined(name for code in codes for name, _ in code.intermediate),
        "gpu-code-damaged": "true" if any(code.damaged for code in codes) else "",
    }
    return {name: value for name, value in found.items() if value}


def _joined(names: Iterable[str]) -> str:
    return " ".join(sorted(set(names), key=_architecture))


def _architecture(name: str) -> tuple[int, str]:
    match = _NUMBER.search(name)
    return (int(match[0]) if match else 0, name)
