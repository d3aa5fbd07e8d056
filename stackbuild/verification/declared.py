"""What a spec itself declares for verification, with the files that it names."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stackbuild.errors import SpecError
from stackbuild.spec.model import StackSpec


def declared(spec: StackSpec, folder: Path) -> dict[str, Any]:
    """The fields of a promise that come from ``verify:``, ``target:`` and the decisions of a spec.

    Args:
        spec: The spec.
        folder: Folder that paths in it are relative to.

    Raises:
        SpecError: ``onnx-model-not-found``, ``verify-file-missing``.
    """
    verify = spec.verify
    model = folder / verify.onnx_model if verify.onnx_model else None
    if model is not None and not model.is_file():
        raise SpecError(
            f"The ONNX model {verify.onnx_model} does not exist.",
            code="onnx-model-not-found",
            where=spec.name,
            do="verify.onnx-model is relative to the spec's folder.",
        )
    source, _, function = (verify.torch_model or "").rpartition(":")
    service = verify.service
    return {
        "decided": _decided(spec),
        "tolerance": dict(verify.tolerance),
        "allow_cpu_ops": verify.allow_cpu_ops,
        "onnx_model": str(model) if model else None,
        "onnx_model_sha256": hashlib.sha256(model.read_bytes()).hexdigest() if model else None,
        "torch_model": _file(spec, folder, source) if source else None,
        "torch_model_function": function,
        "batch": verify.batch,
        "concurrency": verify.concurrency,
        "training": verify.training,
        "memory_margin": _part(verify.memory_margin),
        "tensorrt": verify.tensorrt,
        "checks": [_file(spec, folder, name) for name in verify.checks],
        "service": {
            "service": service,
            "request": _file(spec, folder, service.request) if service.request else None,
            "answer": _file(spec, folder, service.answer) if service.answer else None,
        }
        if service is not None
        else None,
        "shm_size": verify.shm_size,
        "user": verify.user,
        "ulimits": dict(verify.ulimits),
        "read_only": verify.read_only,
        "compatibility": spec.target.compatibility,
    }


def _file(spec: StackSpec, folder: Path, name: str) -> dict[str, str]:
    path = folder / name
    if not path.is_file():
        raise SpecError(
            f"verify: names {name}, which does not exist.",
            code="verify-file-missing",
            where=spec.name,
            do="Paths under verify: are relative to the spec's folder.",
        )
    return {"name": name, "path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _part(percentage: str | None) -> float | None:
    return float(percentage.rstrip("%")) / 100 if percentage is not None else None


def _decided(spec: StackSpec) -> tuple[str, ...]:
    names = [Requirement(override).name for override in spec.overrides]
    return tuple(sorted({str(canonicalize_name(name)) for name in [*names, *spec.exclude]}))
