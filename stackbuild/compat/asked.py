"""Which gates a check asks of a stack by itself; they answer only where there is something against it."""

from __future__ import annotations

# Those of base.py, wheels.py, onnxruntime.py, environment.py and policy.py, as ``judge_image`` and the check ask them.
GATES_OF_A_STACK = (
    "no-such-tag",
    "tag-digest-disagree",
    "digest-platform-mismatch",
    "distribution-eol",
    "python-eol",
    "cpu-wheel-in-gpu-image",
    "channel-not-published",
    "wheel-not-for-python",
    "glibc-too-old",
    "unpinned-torch",
    "mixed-cuda-majors",
    "label-cuda-mismatch",
    "base-wheel-cuda-differ",
    "no-wheel-for-platform",
    "ort-cpu-and-gpu-both",
    "ort-cuda-major",
    "ort-cudnn-major",
    "tensorrt-major",
    "cudnn-major-conflict",
    "flavour-lacks-lib",
    "no-compute-capability",
    "disable-require-typo",
    "require-disabled",
    "base-not-allowed",
    "index-not-allowed",
    "compatibility-not-allowed",
)
