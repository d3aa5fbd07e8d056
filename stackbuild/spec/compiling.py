"""What to do about a package that there is only as source: a stack takes wheels alone (DESIGN §3.3)."""

from __future__ import annotations

import re

from stackbuild.facts.tables import Facts
from stackbuild.spec.gpu_image import expects_gpu, is_cuda_image
from stackbuild.spec.model import ImageBaseSpec, StackSpec

_SMALLER = re.compile(r"-(?:base|runtime)-")
_CUDA_IMAGE = "nvidia/cuda"


def compiling_advice(spec: StackSpec) -> str:
    """How to make the wheel of such a package, as sentences; of a stack for GPUs also where and for which of them.

    An image is built where no GPU is seen. What compiles an extension of CUDA then has to be told the
    architectures, or it takes a default list, or leaves the GPU out (PyTorch, torch.utils.cpp_extension:
    TORCH_CUDA_ARCH_LIST). nvcc and the headers are in the -devel images alone (NVIDIA, overview of nvidia/cuda).
    """
    wheel = (
        "Build its wheel, and write {url: …, sha256: …} under packages, or put it on an index of your own."
    )
    if not expects_gpu(spec):
        return wheel
    tag = _cuda_tag(spec)
    image = f"{_CUDA_IMAGE}:{_SMALLER.sub('-devel-', tag)}" if tag else f"a -devel image of {_CUDA_IMAGE}"
    return (
        f'{wheel} An extension of CUDA is compiled in {image}, which has nvcc, with TORCH_CUDA_ARCH_LIST="'
        f'{_architectures(spec)}" (and FORCE_CUDA=1 where it is honoured): a build sees no GPU to compile for.'
    )


def _cuda_tag(spec: StackSpec) -> str:
    base = spec.base
    return base.tag if isinstance(base, ImageBaseSpec) and is_cuda_image(base.image) else ""


def _architectures(spec: StackSpec) -> str:
    """The compute capabilities of the target's GPUs, as TORCH_CUDA_ARCH_LIST takes them."""
    facts = Facts()
    rows = [(gpu, facts.gpu(gpu)) for gpu in spec.target.gpus]
    found = {row.compute_capability if row else gpu for gpu, row in rows}
    return ";".join(sorted(found)) or "the compute capabilities of your GPUs"
