"""The rows of the fact tables, one frozen class a table.

Each row keeps where it came from and how sure it is; a finding that rests on an uncertain row says so.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, dataclass_transform

Confidence = Literal["measured", "corroborated", "authoritative-capture", "sourced", "medium", "uncertain"]


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
class Row:
    """What every fact carries: frozen, and made by naming every field.

    Written out here because making a dataclass of each takes ten times as long, at every start of a command.

    Raises:
        TypeError: A field is missing, or is none of this table's.
    """

    source: tuple[str, ...]
    confidence: Confidence

    FIELDS: ClassVar[tuple[str, ...]] = ("source", "confidence")

    def __init_subclass__(cls) -> None:
        """Add the class's own fields behind those that every row has."""
        super().__init_subclass__()
        cls.FIELDS = (*cls.FIELDS, *cls.__annotations__)

    def __init__(self, **values: Any) -> None:
        """Take a value for each field."""
        if values.keys() != set(self.FIELDS):
            wrong = ", ".join(sorted(values.keys() ^ set(self.FIELDS)))
            raise TypeError(f"{type(self).__name__} has a field too many or too few: {wrong}")
        vars(self).update((name, values[name]) for name in self.FIELDS)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a fact does not change."""
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: a fact does not change")

    def __delattr__(self, name: str) -> None:
        """Refuse: a fact does not change."""
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: a fact does not change")


class Toolkit(Row):
    """A CUDA toolkit release and the Linux driver packaged with it or paired to it."""

    cuda: str
    version: str
    release: str
    driver: str | None
    branch: int | None
    note: str


class DriverBranch(Row):
    """An NVIDIA driver branch."""

    branch: int
    max_cuda: str | None
    type: str
    eol: str | None
    eol_note: str
    last_driver: str | None
    note: str


class MinorVersionFloor(Row):
    """The oldest Linux driver with minor-version compatibility for a CUDA major."""

    cuda_major: int
    min_driver: str
    note: str


class ForwardCompatibility(Row):
    """Whether the cuda-compat package of a CUDA release is supported on a driver branch."""

    cuda: str
    branch: int
    state: Literal["compatible", "not-needed", "no-package"]


class Gpu(Row):
    """A product and its compute capability."""

    product: str
    compute_capability: str
    kind: Literal["datacenter", "workstation", "geforce", "jetson"]


class Architecture(Row):
    """A compute capability: the first and last toolkit and driver that know it."""

    compute_capability: str
    architecture: str
    first_cuda: str
    last_cuda_major: int | None
    min_driver_branch: int | None
    last_driver_branch: int | None
    note: str


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


class TorchVariant(Row):
    """A torch build for one CUDA variant: what it was compiled for."""

    version: str
    variant: str
    cuda: str
    sm: tuple[str, ...]
    ptx: tuple[str, ...]
    cudnn: str | None
    note: str


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


class OnnxruntimeFeed(Row):
    """onnxruntime-gpu builds of one feed outside the default index, for a range of versions."""

    feed: str
    first: str
    last: str
    cuda_major: int
    cudnn_major: int


class CudnnUser(Row):
    """A package that links cuDNN itself, for a range of versions; an empty ``before`` is open."""

    package: str
    first: str
    before: str
    cuda_major: int
    cudnn_major: int


class TensorrtRelease(Row):
    """A TensorRT release."""

    version: str
    date: str
    cuda: tuple[str, ...]
    sm: tuple[int, ...] | None
    note: str


class Distribution(Row):
    """A Linux distribution."""

    id: str
    python: str
    glibc: str
    eol: str
    eol_note: str


class PythonVersion(Row):
    """A CPython release line."""

    version: str
    eol: str


class Manylinux(Row):
    """A manylinux policy and the glibc it needs."""

    tag: str
    glibc: str
    aliases: tuple[str, ...]


class CudaImageDigest(Row):
    """A digest seen for an nvidia/cuda tag."""

    tag: str
    digest: str
    kind: str
    contexts: int | None
    corroborated: bool
    note: str


class CudaImageRequirement(Row):
    """NVIDIA_REQUIRE_CUDA of the nvidia/cuda images of one CUDA release."""

    cuda: str
    value: str | None
    prefix: str


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
