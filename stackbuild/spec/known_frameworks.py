"""The names that ``frameworks`` of a spec may have."""

from __future__ import annotations

TORCH_FAMILY = ("torch", "torchvision", "torchaudio", "triton")
KNOWN_FRAMEWORKS = (
    *TORCH_FAMILY,
    "onnxruntime",
    "onnxruntime-gpu",
    "tensorrt",
    "tensorrt-cu12",
    "tensorrt-cu13",
)
