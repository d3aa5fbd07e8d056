"""PyTorch: the import, what the build says of itself, and products against a double-precision reference."""

from __future__ import annotations

import math
import time
from typing import Any, Dict, List

from suite.library_owners import mapped_with_owners

# Entries of the reference that are summed exactly, so that the reference is not taken on trust.
CHECKED_ENTRIES = 8


def load(options: Dict[str, Any]) -> Dict[str, Any]:
    """Import torch in the worker; returns what the build says of itself. Takes no options."""
    del options
    began = time.monotonic()
    import torch

    seconds = round(time.monotonic() - began, 4)
    # Read from the build itself; torch.cuda.get_arch_list() would initialise CUDA, which no fork survives.
    arch_flags = getattr(getattr(torch, "_C", None), "_cuda_getArchFlags", None)
    flags = arch_flags() if arch_flags is not None else None
    return {
        "seconds": seconds,
        "version": str(torch.__version__),
        "arch_list": flags.split() if flags else [],
        "libraries": mapped_with_owners(),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "git_version": getattr(torch.version, "git_version", None),
        "file": torch.__file__,
    }


def matmul(options: Dict[str, Any]) -> Dict[str, Any]:
    """Multiply two seeded random matrices in each precision on the intended device.

    Options: ``device`` (``cpu`` or ``cuda``), ``precisions`` (names such as ``fp32``), ``size``, ``seed``.
    The error of a precision is the largest absolute difference from the double-precision product of
    the same rounded inputs, divided by that product's largest absolute value.
    """
    import torch

    types = {
        "fp64": torch.float64,
        "fp32": torch.float32,
        "tf32": torch.float32,
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
    }
    size, device = int(options["size"]), options["device"]
    generator = torch.Generator().manual_seed(int(options["seed"]))
    left = torch.randn(size, size, generator=generator, dtype=torch.float64)
    right = torch.randn(size, size, generator=generator, dtype=torch.float64)
    products = {
        precision: _product(torch, left, right, types[precision], device, tf32=precision == "tf32")
        for precision in options["precisions"]
    }
    return {
        "device": device,
        "size": size,
        "seed": options["seed"],
        "threads": torch.get_num_threads(),
        "reference_error": _reference_error(left, right, left @ right),
        "products": products,
    }


def _product(torch: Any, left: Any, right: Any, dtype: Any, device: str, *, tf32: bool) -> Dict[str, Any]:
    if device == "cuda":
        # The image's own default may allow it for fp32, which is then what fp32 is measured with.
        torch.backends.cuda.matmul.allow_tf32 = tf32 or torch.backends.cuda.matmul.allow_tf32
    a, b = left.to(dtype).to(device), right.to(dtype).to(device)
    began = time.monotonic()
    try:
        product = a @ b
    except (RuntimeError, NotImplementedError) as refusal:
        return {"unsupported": str(refusal)[:500]}
    actual = product.to("cpu", torch.float64)  # also waits for the device
    seconds = time.monotonic() - began
    reference = a.to("cpu", torch.float64) @ b.to("cpu", torch.float64)
    finite = bool(torch.isfinite(actual).all())
    error = float((actual - reference).abs().max() / reference.abs().max()) if finite else None
    return {
        "error": error,
        "finite": finite,
        "device": str(product.device.type),
        "seconds": round(seconds, 6),
    }


def _reference_error(left: Any, right: Any, product: Any) -> float:
    """Largest relative difference of a few entries of the reference from exact sums of their terms."""
    size = left.shape[0]
    spread: List[int] = [entry * (size - 1) // (CHECKED_ENTRIES - 1) for entry in range(CHECKED_ENTRIES)]
    scale = float(product.abs().max())
    worst = 0.0
    for row, column in zip(spread, reversed(spread)):
        terms = (left[row] * right[:, column]).tolist()
        worst = max(worst, abs(math.fsum(terms) - float(product[row, column])) / scale)
    return worst
