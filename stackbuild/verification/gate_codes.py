"""The codes of the runtime gates, in the order of a report; those that are judged together have a name."""

from __future__ import annotations

DISTRIBUTION_CODES = (
    "dists-match-lock",
    "dependencies-consistent",
    "mixed-cuda-majors",
    "ort-cpu-and-gpu-both",
)
REACH_CODES = (
    "device-nodes",
    "libcuda-not-in-container",
    "no-compute-capability",
    "stub-on-runtime-path",
    "cuda-init",
    "driver-too-old",
    "arch-not-covered",
    "nvml-agrees",
    "devices-as-reserved",
    "mig-no-instance",
)
TORCH_CODES = (
    "torch-import",
    "torch-version",
    "cpu-wheel-in-gpu-image",
    "torch-devices",
    "torch-matmul",
    "torch-convolution",
    "torch-all-reduce",
    "torch-model",
    "torch-repeatable",
    "torch-checkpoint",
)
ONNXRUNTIME_CODES = (
    "ort-import",
    "ort-version",
    "ort-session",
    "ort-silent-cpu-fallback",
    "ort-model-session",
    "ort-tensorrt",
    "models-agree",
)
SERVICE_CODES = ("service-ready", "service-answer", "service-latency")

GATE_CODES = (
    "python-version",
    "os-matches-lock",
    *DISTRIBUTION_CODES,
    *REACH_CODES,
    "libraries-as-locked",
    "cudnn-shadowed",
    "packages-import",
    *TORCH_CODES,
    *ONNXRUNTIME_CODES,
    "memory-fits",
    "shm-too-small",
    *SERVICE_CODES,
    "stack-check",
    "run-evidence",
)
