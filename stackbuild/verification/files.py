"""The files of a stack that go into the container, and the names they have there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from stackbuild.errors import LockError
from stackbuild.verification.promise import Promise, PromisedFile

SUITE_FOLDER = "/run/stackbuild/suite"
ONNX_MODEL = "stack-model.onnx"
TORCH_MODEL = "stack_model.py"
SERVICE_REQUEST = "service-request"


def check_name(number: int) -> str:
    """The name that the stack's check of that number has in the container."""
    return f"check_{number}.py"


def stack_files(promise: Promise) -> Mapping[str, bytes]:
    """Name in the suite's folder → content, of all the stack's own files.

    Raises:
        LockError: A file is not the one that was promised any more: ``onnx-model-changed``,
            ``verify-file-changed``.
    """
    files = {name: _unchanged(file) for name, file in _named(promise)}
    if promise.onnx_model is not None:
        content = Path(promise.onnx_model).read_bytes()
        if hashlib.sha256(content).hexdigest() != promise.onnx_model_sha256:
            raise LockError(
                "The ONNX model changed while it was being verified.",
                code="onnx-model-changed",
                where=promise.onnx_model,
                do="Run the same command again.",
            )
        files[ONNX_MODEL] = content
    return files


def _named(promise: Promise) -> Iterator[tuple[str, PromisedFile]]:
    if promise.torch_model is not None:
        yield TORCH_MODEL, promise.torch_model
    for number, check in enumerate(promise.checks):
        yield check_name(number), check
    if promise.service is not None and promise.service.request is not None:
        yield SERVICE_REQUEST, promise.service.request


def _unchanged(file: PromisedFile) -> bytes:
    content = Path(file.path).read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise LockError(
            f"{file.name} changed while it was being used for verification.",
            code="verify-file-changed",
            where=file.path,
            do="Run the same command again.",
        )
    return content
