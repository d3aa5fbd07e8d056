"""A convolution on the intended device, on a GPU through cuDNN and nothing else."""

from __future__ import annotations

import time
from typing import Any, Dict

STRIDE, PADDING, DILATION, GROUPS = [1, 1], [1, 1], [1, 1], 1


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Convolve seeded random images in each precision and compare with double precision on the CPU.

    Options: ``device``, ``precisions`` and ``seed``. The error is relative to the reference's largest value.
    """
    import torch

    types = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    device = options["device"]
    generator = torch.Generator().manual_seed(int(options["seed"]))
    images = torch.randn(2, 16, 24, 24, generator=generator, dtype=torch.float64)
    weights = torch.randn(32, 16, 3, 3, generator=generator, dtype=torch.float64)
    results = {
        precision: _convolve(torch, images, weights, types[precision], device)
        for precision in options["precisions"]
    }
    return {
        "device": device,
        "library": "cuDNN" if device == "cuda" else "CPU",
        "cudnn": torch.backends.cudnn.version() if device == "cuda" else None,
        "convolutions": results,
    }


def _convolve(torch: Any, images: Any, weights: Any, dtype: Any, device: str) -> Dict[str, Any]:
    a, w = images.to(dtype).to(device), weights.to(dtype).to(device)
    reference = torch.nn.functional.conv2d(a.cpu().double(), w.cpu().double(), padding=PADDING)
    began = time.monotonic()
    try:
        if device == "cuda":
            # Not conv2d, which goes to another library without a word when cuDNN cannot.
            result = torch.cudnn_convolution(
                a, w, PADDING, STRIDE, DILATION, GROUPS, benchmark=False, deterministic=True, allow_tf32=False
            )
        else:
            result = torch.nn.functional.conv2d(a, w, padding=PADDING)
    except (RuntimeError, NotImplementedError) as refusal:
        return {"unsupported": str(refusal)[:500]}
    actual = result.to("cpu", torch.float64)
    seconds = time.monotonic() - began
    finite = bool(torch.isfinite(actual).all())
    error = float((actual - reference).abs().max() / reference.abs().max()) if finite else None
    return {
        "error": error,
        "finite": finite,
        "device": str(result.device.type),
        "seconds": round(seconds, 6),
    }
