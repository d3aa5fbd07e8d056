"""Where an image's bytes are: by layer, by owner, and what could be saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stackbuild.scan.contents.cuda import CudaLibrary
from stackbuild.scan.contents.packages import SystemPackage
from stackbuild.scan.contents.python import PythonContents
from stackbuild.scan.contents.rpm_files import RpmFiles
from stackbuild.scan.contents.unwanted import Leftover
from stackbuild.scan.image_files import ImageFiles

_DISTRIBUTION_FOLDERS = ("usr/", "lib/", "bin/", "sbin/", "lib64/", "etc/", "var/")
_OWN_FOLDERS = ("usr/local/", "usr/src/")


@dataclass(frozen=True, slots=True)
class Saving:
    """Bytes that the image could do without.

    Attributes:
        what: What they are.
        size: Bytes.
        how: How to be rid of them.
    """

    what: str
    size: int
    how: str


def size_by_owner(
    files: ImageFiles, python: PythonContents, packages: Sequence[SystemPackage], rpm_files: RpmFiles
) -> dict[str, int]:
    """Bytes by owner, largest first: Python distributions and rpms with their versions, the distribution, folders.

    Of debs and apks a scan keeps only the libraries they list; their files are together the distribution's.
    """
    sizes: dict[str, int] = defaultdict(int)
    names = [f"{item.name} {item.version}" for item in python.distributions]
    rpms = [f"{item.name} {item.version}" for item in packages]
    has_rpms = bool(rpm_files)
    for path, placed in files.placed():
        size = placed.entry.size
        if not size:
            continue
        if (number := python.owners.get(path)) is not None:
            sizes[names[number]] += size
        elif has_rpms and (number := rpm_files.owner(path)) is not None:
            sizes[rpms[number]] += size
        else:
            sizes[_folder(path)] += size
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _folder(path: str) -> str:
    if path.endswith(".pyc"):
        return "byte-code"
    if path.startswith(_DISTRIBUTION_FOLDERS) and not path.startswith(_OWN_FOLDERS):
        return "the distribution"
    return "/" + "/".join(path.split("/")[: 3 if path.startswith("usr/") else 2])


def savings(
    files: ImageFiles, cuda: Sequence[CudaLibrary], leftovers: Iterable[Leftover], python: PythonContents
) -> tuple[Saving, ...]:
    """What could be saved, largest first."""
    found = [*_twice(cuda), *_hidden(files)]
    found += [
        Saving(item.kind, item.size, "Remove it in the step that made it, or build with the cache mounted.")
        for item in leftovers
    ]
    # Those of wheels are listed in their RECORDs, and stay.
    archives = sum(
        placed.entry.size
        for path, placed in files.placed()
        if path.endswith(".a") and placed.entry.kind == "file" and path not in python.owners
    )
    found.append(
        Saving("static libraries (*.a)", archives, "Take a -base or -runtime flavour in place of -devel.")
    )
    return tuple(sorted((item for item in found if item.size), key=lambda item: (-item.size, item.what)))


def _twice(cuda: Sequence[CudaLibrary]) -> Iterable[Saving]:
    """CUDA both in the base and in the wheels: of each library that is there twice, the base's copy."""
    in_wheels = {item.family for item in cuda if item.owner}
    spare = [item for item in cuda if not item.owner and item.family in in_wheels]
    if spare:
        families = ", ".join(sorted({item.family for item in spare}))
        yield Saving(
            f"CUDA libraries that the wheels bring too ({families})",
            sum(item.size for item in spare),
            "Take a -base image: the wheels bring CUDA themselves.",
        )


def _hidden(files: ImageFiles) -> Iterable[Saving]:
    layers: dict[int, int] = defaultdict(int)
    for item in files.hidden:
        layers[item.layer] += item.size
    for layer, size in layers.items():
        yield Saving(
            f"files of layer {layer} that later layers delete or replace",
            size,
            "Delete them in the step that makes them; a later layer only hides them.",
        )
