"""The codes of the runtime gates, in the order of a report."""

from __future__ import annotations

GATE_CODES = (
    "python-version",
    "os-matches-lock",
    "dists-match-lock",
    "dependencies-consistent",
    "mixed-cuda-majors",
    "ort-cpu-and-gpu-both",
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
    "libraries-as-locked",
    "cudnn-shadowed",
    "packages-import",
    "torch-import",
    "torch-version",
    "cpu-wheel-in-gpu-image",
    "torch-matmul",
    "ort-import",
    "ort-version",
    "ort-session",
    "ort-silent-cpu-fallback",
    "ort-model-session",
)
