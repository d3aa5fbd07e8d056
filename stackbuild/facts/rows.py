"""The rows of the fact tables, one frozen class a table.

Each row keeps where it came from and how sure it is; a finding that rests on an uncertain row says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Confidence = Literal["measured", "corroborated", "authoritative-capture", "sourced", "medium", "uncertain"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Row:
    """What every fact carries."""

    source: tuple[str, ...]
    confidence: Confidence


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Toolkit(Row):
    """A CUDA toolkit release and the Linux driver packaged with it or paired to it."""

    cuda: str
    version: str
    release: str
    driver: str | None
    branch: int | None
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DriverBranch(Row):
    """An NVIDIA driver branch."""

    branch: int
    max_cuda: str | None
    type: str
    eol: str | None
    eol_note: str
    last_driver: str | None
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MinorVersionFloor(Row):
    """The oldest Linux driver with minor-version compatibility for a CUDA major."""

    cuda_major: int
    min_driver: str
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ForwardCompatibility(Row):
    """Whether the cuda-compat package of a CUDA release is supported on a driver branch."""

    cuda: str
    branch: int
    state: Literal["compatible", "not-needed", "no-package"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Gpu(Row):
    """A product and its compute capability."""

    product: str
    compute_capability: str
    kind: Literal["datacenter", "workstation", "geforce", "jetson"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Architecture(Row):
    """A compute capability: the first and last toolkit and driver that know it."""

    compute_capability: str
    architecture: str
    first_cuda: str
    last_cuda_major: int | None
    min_driver_branch: int | None
    last_driver_branch: int | None
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TorchRelease(Row):
    """A torch release."""

    version: str
    uploaded: str
    requires_python: str
    default_variant: dict[str, str]
    python_tags: tuple[str, ...]
    glibc: str
    cudnn: str | None
    nccl: str | None
    triton: str | None
    channels: tuple[str, ...]
    channels_confidence: Confidence


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TorchVariant(Row):
    """A torch build for one CUDA variant: what it was compiled for."""

    version: str
    variant: str
    cuda: str
    sm: tuple[str, ...]
    ptx: tuple[str, ...]
    cudnn: str | None
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OnnxruntimeRelease(Row):
    """An onnxruntime-gpu release of the default index; ``sm`` is None where nobody read the wheel."""

    version: str
    uploaded: str
    cuda_build: str
    cuda_major: int
    cudnn_major: int
    cudnn_link: str
    needs_libcuda_at_load: bool
    tensorrt_major: int
    python_tags: tuple[str, ...]
    platform_tags: tuple[str, ...]
    requires_python: str | None
    extras: tuple[str, ...]
    sm: tuple[str, ...] | None
    ptx: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OnnxruntimeFeed(Row):
    """onnxruntime-gpu builds of one feed outside the default index, for a range of versions."""

    feed: str
    first: str
    last: str
    cuda_major: int
    cudnn_major: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CudnnUser(Row):
    """A package that links cuDNN itself, for a range of versions; an empty ``before`` is open."""

    package: str
    first: str
    before: str
    cuda_major: int
    cudnn_major: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TensorrtRelease(Row):
    """A TensorRT release."""

    version: str
    date: str
    cuda: tuple[str, ...]
    sm: tuple[int, ...] | None
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Distribution(Row):
    """A Linux distribution."""

    id: str
    python: str
    glibc: str
    eol: str
    eol_note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PythonVersion(Row):
    """A CPython release line."""

    version: str
    eol: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Manylinux(Row):
    """A manylinux policy and the glibc it needs."""

    tag: str
    glibc: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CudaImageDigest(Row):
    """A digest seen for an nvidia/cuda tag."""

    tag: str
    digest: str
    kind: str
    contexts: int | None
    corroborated: bool
    note: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CudaImageRequirement(Row):
    """NVIDIA_REQUIRE_CUDA of the nvidia/cuda images of one CUDA release."""

    cuda: str
    value: str | None
    prefix: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class FailureSignature(Row):
    """An error text people meet.

    ``code`` is a gate's or an error's where it is the same failure. ``pattern`` is a regular expression, searched
    in single lines, every repetition of it bounded; a text that matches holds one of ``contains``. ``apart``
    tells it from rows that share the text.
    """

    code: str
    signature: str
    pattern: str
    contains: tuple[str, ...]
    stage: Literal["build", "start", "run"]
    cause: str
    evidence: str
    next_step: str
    apart: str
