"""The grammar of nvidia/cuda tags (facts: cuda_image_requirements, tag_grammar)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackbuild.compat.versions import CudaVersion, parse_cuda

_TAG = re.compile(
    r"(?P<cuda>\d+\.\d+(?:\.\d+)?)-(?:(?P<cudnn>cudnn\d*)-|(?P<tensorrt>tensorrt)-)?"
    r"(?P<flavour>base|runtime|devel)-(?P<os>[a-z]+[0-9.]*)"
)


@dataclass(frozen=True)
class CudaTag:
    """The parts of a tag such as ``12.4.1-cudnn-runtime-ubuntu22.04``.

    Attributes:
        release: The CUDA release as written, for example ``12.4.1``.
        cudnn: ``cudnn``, ``cudnn8``, … or empty.
        flavour: ``base`` (cudart only), ``runtime`` (math libraries) or ``devel`` (compiler).
        os: For example ``ubuntu22.04``.
    """

    release: str
    cudnn: str
    flavour: str
    os: str

    @property
    def cuda(self) -> CudaVersion:
        """Major and minor of the release."""
        return parse_cuda(self.release)


def parse_cuda_tag(tag: str) -> CudaTag | None:
    """The parts of an nvidia/cuda tag, or None when it does not follow the grammar."""
    match = _TAG.fullmatch(tag)
    if match is None:
        return None
    return CudaTag(match["cuda"], match["cudnn"] or "", match["flavour"], match["os"])
