"""CUDA's libraries in an image, wherever they lie: by SONAME and version, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stackbuild.compat.versions import parse_driver
from stackbuild.scan.contents.python import PythonContents
from stackbuild.scan.elf_record import Library
from stackbuild.scan.image_files import ImageFiles

# Family → names of its libraries without ``lib`` and ``.so``. The sub-libraries count for their family.
_FAMILIES = {
    "cudart": r"cudart",
    "cublas": r"cublas|cublasLt|nvblas",
    "cudnn": r"cudnn(?:_[a-z0-9_]+)?",
    "nccl": r"nccl",
    "nvrtc": r"nvrtc",
    "cufft": r"cufft|cufftw",
    "curand": r"curand",
    "cusolver": r"cusolver|cusolverMg",
    "cusparse": r"cusparse",
    "cusparselt": r"cusparseLt",
    "nvjitlink": r"nvJitLink",
    "tensorrt": r"nvinfer(?:_[a-z0-9_]+)?|nvonnxparser",
    "cupti": r"cupti",
}
# One expression for all of them: it is asked for every library and for every name that one needs.
_NAME = re.compile(
    rf"lib(?:{'|'.join(f'(?P<{family}>{names})' for family, names in _FAMILIES.items())})\.so(?:\.[0-9]+)*"
)
# The library whose version is the family's, where there are several.
_MAIN = {
    "cublas": "libcublas",
    "cudnn": "libcudnn",
    "tensorrt": "libnvinfer",
    "cusolver": "libcusolver",
    "cufft": "libcufft",
}
# Parts of the host's driver (NVIDIA Container Toolkit, list of driver libraries); never an image's own.
_DRIVER = re.compile(
    r"lib(?:cuda|cudadebugger|nvidia-(?:ml|ptxjitcompiler|opencl|cfg|allocator|compiler|gpucomp|nvvm|encode|"
    r"fbc|opticalflow|glcore|glvkspirv|glsi|eglcore|tls|rtcore|ngx|pkcs11|sandboxutils|api)[a-z0-9-]*|"
    r"nvcuvid|nvoptix|GLX_nvidia|EGL_nvidia|GLESv2_nvidia|GLESv1_CM_nvidia|vdpau_nvidia)\.so(?:\.([0-9]+(?:\.[0-9]+)*))?"
)
_IN_COMPAT = re.compile(r"(?:^|/)compat(?:_orin)?/")


@dataclass(frozen=True, slots=True)
class CudaLibrary:
    """One CUDA library in an image.

    Attributes:
        family: ``cudart``, ``cublas``, ``cudnn``, …
        path: Where it lies; links to it are not listed.
        soname: The name that programs ask for.
        version: As far as file name, owner or SONAME say it.
        owner: The distribution that brings it, as ``NAME VERSION``; empty for none.
        layer: The layer it comes from.
        size: Bytes.
    """

    family: str
    path: str
    soname: str
    version: str
    owner: str
    layer: int
    size: int

    @property
    def major(self) -> str:
        """The number at the end of its SONAME: what the loader tells versions apart by."""
        return self.soname.partition(".so.")[2]

    @property
    def is_nvidias(self) -> bool:
        """Whether a distribution of NVIDIA's own brings it, whose version is the library's."""
        return _is_nvidias(self.owner.partition(" ")[0])

    @property
    def is_main(self) -> bool:
        """False for a family's further libraries, such as ``libcudnn_ops``."""
        name = self.path.rsplit("/", 1)[-1]
        return name.startswith(_MAIN.get(self.family, "lib") + ".so") or self.family not in _MAIN


@dataclass(frozen=True, slots=True)
class DriverLibrary:
    """A part of the NVIDIA driver in an image, or something with its name.

    Attributes:
        path: Where it lies, or the link.
        target: What a link leads to; empty for a file.
        version: The driver release in its file name; empty without one.
        place: ``compat`` (forward compatibility), ``stub`` (to link against) or ``driver``.
        cuda: Of a compat library with a note, the CUDA level it gives.
        branches: Of such a library, the host drivers' branches it may be used with.
        layer: The layer it comes from.
    """

    path: str
    target: str
    version: str
    place: str
    cuda: str
    branches: tuple[int, ...]
    layer: int


def is_driver_name(name: str) -> bool:
    """Whether a library of this name comes with the host's driver: ``libcuda.so.1``, ``libnvidia-ml.so.1``, …"""
    return _DRIVER.fullmatch(name) is not None


def cuda_family(name: str) -> str:
    """The family of a library by its file name or SONAME; empty for one that is not CUDA's."""
    match = _NAME.fullmatch(name)
    return (match.lastgroup or "") if match is not None else ""


def cuda_libraries(
    files: ImageFiles, libraries: Mapping[str, Library], python: PythonContents
) -> tuple[CudaLibrary, ...]:
    """The CUDA libraries that are files, by family and path; stubs are not among them."""
    found = []
    names = _full_names(files, libraries)
    for path, library in libraries.items():
        family = cuda_family(library.name) or cuda_family(library.elf.soname)
        placed = files.get(path)
        if not family or placed is None or _is_stub(path):
            continue
        owner = python.owner(path)
        soname = library.elf.soname or library.name
        fuller = names.get((path.rpartition("/")[0], library.elf.build_id or soname, placed.entry.size), "")
        stated = owner.version if owner and _is_nvidias(owner.name) else ""
        found.append(
            CudaLibrary(
                family=family,
                path=path,
                soname=soname,
                version=_version(fuller or library.name, soname, stated),
                owner=f"{owner.name} {owner.version}" if owner else "",
                layer=placed.layer,
                size=placed.entry.size,
            )
        )
    return tuple(sorted(found, key=lambda item: (item.family, item.path)))


def _full_names(files: ImageFiles, libraries: Mapping[str, Library]) -> Mapping[tuple[str, str, int], str]:
    """The longest name of each library in a folder, by folder, build ID (or SONAME) and size.

    Wheels cannot hold links, so they hold ``libcupti.so``, ``libcupti.so.13`` and ``libcupti.so.2026.2.0`` each whole.
    """
    longest: dict[tuple[str, str, int], str] = {}
    for path, library in libraries.items():
        placed = files.get(path)
        if placed is not None and cuda_family(library.name):
            soname = library.elf.soname or library.name
            key = (path.rpartition("/")[0], library.elf.build_id or soname, placed.entry.size)
            longest[key] = max(longest.get(key, ""), library.name, key=lambda name: (name.count("."), name))
    return longest


def _is_nvidias(distribution: str) -> bool:
    return distribution.lower().replace("_", "-").startswith(("nvidia-", "tensorrt"))


def driver_libraries(files: ImageFiles, libraries: Mapping[str, Library]) -> tuple[DriverLibrary, ...]:
    """Files and links with the names of the driver's libraries, by path."""
    found = []
    for path, placed in files.placed():
        if ".so" not in path:
            continue
        name = path[path.rfind("/") + 1 :]
        match = _DRIVER.fullmatch(name) if name.startswith("lib") else None
        entry, layer = placed
        if match is None or entry.kind not in ("file", "symlink", "hardlink"):
            continue
        target = files.resolve(path) or ""
        real = target or path
        place = "stub" if _is_stub(real) else "compat" if _IN_COMPAT.search(real) else "driver"
        library = libraries.get(real)
        note = library.elf.compat if library is not None else None
        version = match[1] or ""
        found.append(
            DriverLibrary(
                path=path,
                target="" if entry.kind == "file" else target,
                version=version if _is_release(version) else "",
                place=place,
                cuda=note.cuda if note else "",
                branches=note.drivers if note else (),
                layer=layer,
            )
        )
    return tuple(sorted(found, key=lambda item: item.path))


def newest_compat(found: Sequence[DriverLibrary]) -> DriverLibrary | None:
    """The compat libcuda of the highest driver release; None without one."""
    compat = [
        item
        for item in found
        if item.place == "compat"
        and item.path.rsplit("/", 1)[-1].startswith("libcuda.so")
        and not item.target
    ]
    return max(compat, key=lambda item: parse_driver(item.version) if item.version else (0,), default=None)


def _is_release(version: str) -> bool:
    return "." in version and version.partition(".")[0].isdecimal() and int(version.partition(".")[0]) > 99


def _is_stub(path: str) -> bool:
    return "/stubs/" in f"/{path}"


def _version(name: str, soname: str, owner: str) -> str:
    """The fullest version there is: of the file name, of NVIDIA's distribution that brings it, of the SONAME."""
    in_name = name.partition(".so.")[2]
    if in_name.count(".") > soname.partition(".so.")[2].count("."):
        return in_name
    return owner or in_name or soname.partition(".so.")[2]
