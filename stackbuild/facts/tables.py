"""Reading the fact tables and looking things up in them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from stackbuild.facts.rows import (
    Architecture,
    CudaImageDigest,
    CudaImageRequirement,
    CudnnUser,
    Distribution,
    DriverBranch,
    FailureSignature,
    ForwardCompatibility,
    Gpu,
    Manylinux,
    MinorVersionFloor,
    OnnxruntimeFeed,
    OnnxruntimeRelease,
    PythonVersion,
    Row,
    TensorrtRelease,
    Toolkit,
    TorchRelease,
    TorchVariant,
)

R = TypeVar("R", bound=Row)

TABLES: dict[str, type[Row]] = {
    "architectures": Architecture,
    "cuda_image_digests": CudaImageDigest,
    "cuda_image_requirements": CudaImageRequirement,
    "cudnn_users": CudnnUser,
    "distributions": Distribution,
    "driver_branches": DriverBranch,
    "failure_signatures": FailureSignature,
    "forward_compatibility": ForwardCompatibility,
    "gpus": Gpu,
    "manylinux": Manylinux,
    "minor_version_floors": MinorVersionFloor,
    "onnxruntime_feeds": OnnxruntimeFeed,
    "onnxruntime_releases": OnnxruntimeRelease,
    "python_versions": PythonVersion,
    "tensorrt_releases": TensorrtRelease,
    "toolkits": Toolkit,
    "torch_releases": TorchRelease,
    "torch_variants": TorchVariant,
}


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """One table: what it is about, when it was collected, its rows and its further notes."""

    name: str
    about: str
    collected: str
    rows: tuple[R, ...]
    notes: dict[str, Any]


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def read_table(name: str, row_class: type[R]) -> Table[R]:
    """Read one table shipped with the package.

    Args:
        name: File name without its ending, for example ``toolkits``.
        row_class: The class of its rows; every row must have exactly that class's fields.

    Raises:
        TypeError: A row has a field too many or too few (a packaging mistake, caught by the tests).
    """
    document = json.loads((Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8"))
    rows = tuple(row_class(**{key: _frozen(value) for key, value in row.items()}) for row in document["rows"])
    notes = {key: value for key, value in document.items() if key not in ("about", "collected", "rows")}
    return Table(name, document["about"], document["collected"], rows, notes)


@cache
def _table(name: str) -> Table[Any]:
    return read_table(name, TABLES[name])


class Facts:
    """The tables, each read when first asked for, and the look-ups that gates need."""

    def table(self, name: str) -> Table[Any]:
        """The table of that name.

        Raises:
            KeyError: There is no such table; ``TABLES`` lists them.
        """
        return _table(name)

    def driver_branch(self, branch: int) -> DriverBranch | None:
        """The driver branch (the first part of a driver's version), or None when the facts lack it."""
        return _by_branch().get(branch)

    def known_branches(self) -> tuple[int, ...]:
        """All driver branches of the facts, oldest first."""
        return tuple(sorted(_by_branch()))

    def minor_version_floor(self, cuda_major: int) -> MinorVersionFloor | None:
        """The oldest driver with minor-version compatibility for that CUDA major."""
        return _floors().get(cuda_major)

    def forward_compatibility(self, cuda: str, branch: int) -> ForwardCompatibility | None:
        """NVIDIA's answer for the cuda-compat package of ``cuda`` (major.minor) on a driver branch."""
        return _forward().get((cuda, branch))

    def architecture(self, compute_capability: str) -> Architecture | None:
        """The facts about a compute capability such as ``"8.9"``."""
        return _architectures().get(compute_capability)

    def gpu(self, name: str) -> Gpu | None:
        """The product of that name; vendor words, spacing and memory sizes in ``name`` do not matter."""
        return _gpus().get(product_key(name))

    def gpus_like(self, text: str) -> tuple[Gpu, ...]:
        """The products whose names hold every word of ``text``: ``4090`` finds the GeForce RTX 4090."""
        words = set(product_key(text).split())
        return tuple(row for key, row in _gpus().items() if words and words <= set(key.split()))

    def gpus_near(self, text: str) -> tuple[str, ...]:
        """The products whose names are written almost as ``text`` is: ``H2OO`` finds H200."""
        import difflib  # only a name that is no product's pays for it

        near = difflib.get_close_matches(product_key(text), list(_gpus()), n=3, cutoff=0.5)
        return tuple(_gpus()[key].product for key in near)

    def torch_release(self, version: str) -> TorchRelease | None:
        """The torch release (public version, without local label)."""
        return _torch_releases().get(version)

    def torch_variant_of(self, version: str, machine: str) -> str | None:
        """The build variant of a torch version: its local label, else what the default index ships; None if unknown.

        Args:
            version: With or without a local label: ``2.9.1+cu130``, ``2.9.1``.
            machine: ``x86_64`` or ``aarch64``.
        """
        public, _, local = version.partition("+")
        if local:
            return local
        release = self.torch_release(public)
        return release.default_variant.get(machine) if release else None

    def torch_variant(self, version: str, variant: str) -> TorchVariant | None:
        """What a torch build was compiled for."""
        return _torch_variants().get((version, variant))

    def onnxruntime_release(self, version: str) -> OnnxruntimeRelease | None:
        """The onnxruntime-gpu release; a patch release that nobody measured answers as None."""
        return _onnxruntime_releases().get(version)

    def distribution(self, identifier: str) -> Distribution | None:
        """The distribution, by id and version as in ``ubuntu24.04`` or ``debian12``."""
        return _distributions().get(identifier)


@cache
def _by_branch() -> dict[int, DriverBranch]:
    return {row.branch: row for row in _table("driver_branches").rows}


@cache
def _floors() -> dict[int, MinorVersionFloor]:
    return {row.cuda_major: row for row in _table("minor_version_floors").rows}


@cache
def _forward() -> dict[tuple[str, int], ForwardCompatibility]:
    return {(row.cuda, row.branch): row for row in _table("forward_compatibility").rows}


@cache
def _architectures() -> dict[str, Architecture]:
    return {row.compute_capability: row for row in _table("architectures").rows}


@cache
def _gpus() -> dict[str, Gpu]:
    return {product_key(row.product): row for row in _table("gpus").rows}


@cache
def _torch_releases() -> dict[str, TorchRelease]:
    return {row.version: row for row in _table("torch_releases").rows}


@cache
def _torch_variants() -> dict[tuple[str, str], TorchVariant]:
    return {(row.version, row.variant): row for row in _table("torch_variants").rows}


@cache
def _onnxruntime_releases() -> dict[str, OnnxruntimeRelease]:
    return {row.version: row for row in _table("onnxruntime_releases").rows}


@cache
def _distributions() -> dict[str, Distribution]:
    return {row.id: row for row in _table("distributions").rows}


# Words that vendors and tools put around a product's name without changing which GPU it is.
_NOISE_WORDS = frozenset(
    {
        "nvidia",
        "tesla",
        "geforce",
        "quadro",
        "gpu",
        "graphics",
        "generation",
        "edition",
        "laptop",
        "sxm",
        "pcie",
    }
)
_FORM_FACTOR = re.compile(r"(sxm\d*|pcie|nvl|hbm\d*e?|\d+g(b|ib)?|\d+q)")


def product_key(name: str) -> str:
    """A product name reduced to what tells GPUs apart: ``NVIDIA A100-SXM4-80GB`` and ``a100`` are one."""
    words = re.split(r"[^a-z0-9]+", re.sub(r"\(.*?\)", " ", name.lower()))
    return " ".join(
        word for word in words if word and word not in _NOISE_WORDS and not _FORM_FACTOR.fullmatch(word)
    )
