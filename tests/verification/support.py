"""Promises and results for the judge's tests, made from a few words."""

from __future__ import annotations

from typing import Any

from stackbuild.verification.model import GateResult, SuiteRun
from stackbuild.verification.promise import Promise, PromisedDistribution

LOCKED = (
    PromisedDistribution(name="numpy", version="2.4.6", requested=True),
    PromisedDistribution(name="onnxruntime", version="1.31.1", requested=True),
    PromisedDistribution(name="torch", version="2.13.0+cpu", requested=True),
)
MARKERS = {
    "implementation_name": "cpython",
    "implementation_version": "3.11.2",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1",
    "platform_system": "Linux",
    "platform_version": "1",
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
}


def cpu_promise(**changes: Any) -> Promise:
    """The promise of a stack like torch-cpu."""
    fields: dict[str, Any] = {
        "source": "lock",
        "stack": "torch-cpu",
        "python": "3.11.2",
        "os": "debian 12",
        "glibc": "2.36",
        "distributions": LOCKED,
        "torch": "2.13.0+cpu",
        "torch_cuda": "",
        "onnxruntime": "1.31.1",
        "onnxruntime_distribution": "onnxruntime",
    }
    return Promise(**{**fields, **changes})


def cuda_promise(**changes: Any) -> Promise:
    """The promise of a stack like torch-cu130."""
    fields: dict[str, Any] = {
        "device": "cuda",
        "stack": "torch-cu130",
        "torch": "2.14.1+cu130",
        "torch_cuda": "13.0",
        "onnxruntime_distribution": "onnxruntime-gpu",
    }
    return cpu_promise(**{**fields, **changes})


def measured(name: str, output: str = "", **values: Any) -> GateResult:
    """A gate that was measured."""
    return GateResult(name=name, outcome="measured", measured=values, output=output)


def distribution(name: str, version: str, *requires: str, missing: int = 0) -> dict[str, Any]:
    """One installed distribution."""
    return {
        "name": name,
        "version": version,
        "requires": list(requires),
        "location": "/opt/venv/lib/python3.11/site-packages",
        "missing_files": missing,
        "missing": ["gone.py"] * min(missing, 5),
    }


def installed(*distributions: dict[str, Any]) -> GateResult:
    """The measurement of ``distributions``; what a promise like torch-cpu's locks when none are named."""
    listed = distributions or tuple(distribution(entry.name, entry.version) for entry in LOCKED)
    return measured("distributions", distributions=list(listed), markers=MARKERS)


def torch_build(version: str = "2.13.0+cpu", cuda: str | None = None) -> GateResult:
    """The measurement of ``torch-import``."""
    return measured(
        "torch-import", seconds=1.5, version=version, cuda=cuda, hip=None, git_version="cf30", file="/x"
    )


def products(device: str = "cpu", /, **errors: float) -> GateResult:
    """The measurement of ``torch-matmul``, with these errors by precision."""
    chosen = {"fp64": 0.0, "fp32": 4e-7, "fp16": 4e-4, "bf16": 3e-3, **errors}
    return measured(
        "torch-matmul",
        device=device,
        size=256,
        seed=1,
        threads=2,
        reference_error=1e-16,
        products={
            precision: {"error": error, "finite": True, "device": device, "seconds": 0.01}
            for precision, error in chosen.items()
        },
    )


def session(provider: str = "CPUExecutionProvider", /, **changes: Any) -> GateResult:
    """The measurement of ``ort-session``."""
    output = changes.pop("output", "")
    values: dict[str, Any] = {
        "requested_providers": [provider],
        "available_providers": [provider],
        "session_providers": [provider],
        "placement": {provider: {"Gemm": 2}},
        "torch_imported": False,
        "create_seconds": 0.01,
        "run_seconds": 0.001,
        "shape": [8, 16],
        "finite": True,
        "error": 0.0,
    }
    return measured("ort-session", output, **{**values, **changes})


def convolutions(device: str = "cpu", /, **errors: float) -> GateResult:
    """The measurement of ``torch-convolution``."""
    chosen = {"fp32": 4e-7, "fp16": 4e-4, "bf16": 3e-3, **errors}
    return measured(
        "torch-convolution",
        device=device,
        library="cuDNN" if device == "cuda" else "CPU",
        cudnn=None,
        convolutions={
            precision: {"error": error, "finite": True, "device": device, "seconds": 0.01}
            for precision, error in chosen.items()
        },
    )


def repeated(**changes: Any) -> GateResult:
    """The measurement of ``torch-repeatable``."""
    values: dict[str, Any] = {
        "device": "cpu",
        "seed": 1,
        "precision": "fp32",
        "steps": 3,
        "threads": 2,
        "differing": [],
        "own_model": None,
        "model_sha256": None,
    }
    return measured("torch-repeatable", **{**values, **changes})


def restored(**changes: Any) -> GateResult:
    """The measurement of ``torch-checkpoint``."""
    values: dict[str, Any] = {"device": "cpu", "bytes": 86454, "differing": [], "same_outputs": True}
    return measured("torch-checkpoint", **{**values, **changes})


def whole_run(*changed: GateResult, **fields: Any) -> SuiteRun:
    """A run on torch-cpu in which everything is well, with some results changed."""
    interpreter = measured(
        "interpreter",
        python="3.11.2",
        executable="/opt/venv/bin/python",
        prefix="/opt/venv",
        glibc="2.36",
        os={"ID": "debian", "VERSION_ID": "12"},
        kernel="6.1",
        shm_bytes=1 << 30,
    )
    loaded = measured(
        "ort-import", seconds=0.2, version="1.31.1", available_providers=[], build="", torch_imported=False
    )
    results = [
        interpreter,
        installed(),
        measured("import-numpy", modules={"numpy": 0.1}),
        torch_build(),
        products(),
        convolutions(),
        repeated(),
        restored(),
        loaded,
        session(),
        *changed,
    ]
    values: dict[str, Any] = {
        "results": {result.name: result for result in results},
        "python": "3.11.2",
        "finished": True,
        "exit_code": 0,
    }
    return SuiteRun(**{**values, **fields})
