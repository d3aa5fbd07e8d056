"""Whether an image is meant for GPUs."""

from __future__ import annotations

from stackbuild.distribution_name import normalized_name
from stackbuild.spec.model import ImageBaseSpec, StackSpec


def is_cuda_image(image: str) -> bool:
    """Whether a repository is NVIDIA's CUDA image, on any registry or mirror."""
    return image == "nvidia/cuda" or image.endswith("/nvidia/cuda")


def expects_gpu(spec: StackSpec) -> bool:
    """Whether the spec means a GPU image: a CUDA variant, a -gpu framework, a CUDA base or target GPUs."""
    variants = {framework.variant for framework in spec.frameworks.values()}
    return bool(
        any(variant and variant.startswith("cu") for variant in variants)
        or any(normalized_name(name) in ("onnxruntime-gpu", "tensorrt") for name in spec.frameworks)
        or (isinstance(spec.base, ImageBaseSpec) and is_cuda_image(spec.base.image))
        or spec.target.gpus
    )
