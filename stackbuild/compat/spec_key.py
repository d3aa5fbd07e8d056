"""Which key of the spec a finding is about, for annotations."""

from __future__ import annotations

from stackbuild.findings import Finding

_BY_CODE: dict[str, tuple[str, ...]] = {
    "base-not-allowed": ("base",),
    "base-wheel-cuda-differ": ("base",),
    "digest-platform-mismatch": ("base", "digest"),
    "distribution-eol": ("base",),
    "flavour-lacks-lib": ("base",),
    "no-such-tag": ("base", "tag"),
    "tag-digest-disagree": ("base", "digest"),
    "gpu-newer-than-toolkit": ("base",),
    "python-eol": ("python",),
    "python-version": ("python",),
    "stack-differs": ("target", "must-match"),
    "torch-import": ("frameworks", "torch"),
    "torch-version": ("frameworks", "torch"),
    "cpu-wheel-in-gpu-image": ("frameworks", "torch"),
    "ort-import": ("frameworks",),
    "ort-version": ("frameworks",),
    "torch-model": ("verify", "torch-model"),
    "ort-model-session": ("verify", "onnx-model"),
    "models-agree": ("verify", "onnx-model"),
    "memory-fits": ("verify", "memory-margin"),
    "shm-too-small": ("verify", "shm-size"),
    "stack-check": ("verify", "checks"),
    "service-ready": ("verify", "service"),
    "service-answer": ("verify", "service"),
    "service-latency": ("verify", "service"),
    "no-compute-capability": ("image", "env"),
    "disable-require-typo": ("image", "env"),
    "require-disabled": ("image", "env"),
    "compatibility-not-allowed": ("target", "compatibility"),
    "waiver-expired": ("waivers",),
    "waiver-unused": ("waivers",),
    "platform-mismatch": ("platforms",),
    "ort-cpu-and-gpu-both": ("packages",),
}


def spec_key(finding: Finding) -> tuple[str, ...]:
    """The path of keys, for example ``("frameworks", "torch")``; empty for the spec as a whole."""
    known = _BY_CODE.get(finding.code)
    if known is not None:
        return known
    first = finding.subject.split(" ")[0]
    if first in ("torch", "onnxruntime-gpu", "onnxruntime", "tensorrt"):
        return ("frameworks", first)
    if finding.subject.startswith(("base image", "NVIDIA_REQUIRE", "cuda-compat")):
        return ("base",)
    return ("target",) if finding.code.startswith("gpu-") else ()
