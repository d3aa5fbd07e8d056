"""Which layer group a wheel belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stackbuild.lock.model import WheelGroup
from stackbuild.resolution.wheels.index_bindings import TORCH_FAMILY

_FRAMEWORK = re.compile(r"(onnxruntime|tensorrt|jax|tensorflow)(-.*|lib)?")
# NVML's bindings are a small pure package, no CUDA library: a new one must not renew that large layer.
_NOT_CUDA = frozenset({"nvidia-ml-py"})


def group_of(package: str, frameworks: Iterable[str] = ()) -> WheelGroup:
    """The layer group of a wheel.

    Args:
        package: Normalised name.
        frameworks: Normalised names of the spec's frameworks.
    """
    if package in TORCH_FAMILY:
        return "torch"
    if package.startswith("nvidia-") and package not in _NOT_CUDA:
        return "cuda"
    if package in frameworks or _FRAMEWORK.fullmatch(package):
        return "framework"
    return "other"
