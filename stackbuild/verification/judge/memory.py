"""Memory: the device's peak against the margin that the stack demands, and /dev/shm (case I03)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stackbuild.findings import Finding, Verdict
from stackbuild.sizes import size_text
from stackbuild.verification.judge.findings import (
    finding,
    measured_on_device,
    not_applicable,
    unmeasured,
)
from stackbuild.verification.model import GateResult
from stackbuild.verification.promise import Promise

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_FOLDER = "/dev/shm"  # noqa: S108 - named, not used
# What DataLoader workers need at the least, where nobody says: each batch in flight lies in /dev/shm.
_USUAL_SHARED_MEMORY = 1 << 30


def judge_memory(promise: Promise, results: Mapping[str, GateResult], no_device: str) -> Finding:
    """Gate ``memory-fits``: the stack's model leaves the margin at the declared batch and concurrency."""
    code = "memory-fits"
    if promise.torch_model is None:
        return not_applicable(code, "the stack names no torch model")
    measured = measured_on_device(
        code, results.get("torch-memory"), no_device, subject=promise.torch_model.name
    )
    if isinstance(measured, Finding):
        return measured
    peak, total = measured["device_peak_bytes"], measured["total_bytes"]
    free = 1 - peak / total
    margin = promise.memory_margin or 0.0
    parts = _parts(measured)
    kept = free >= margin
    work = "training step" if measured["training"] else "forward pass"
    return finding(
        code,
        Verdict.PASS if kept else Verdict.FAIL,
        f"a {work} of batch {measured['batch']} at concurrency {measured['concurrency']} peaks at "
        f"{size_text(peak)} of {size_text(total)}, which leaves {free:.0%}",
        subject=promise.torch_model.name,
        measured=parts,
        required=f"{margin:.0%} free" if promise.memory_margin is not None else "",
        details=dict(measured),
    )


def _parts(measured: Mapping[str, Any]) -> str:
    named = (
        ("weights", "weight_bytes"),
        ("activations", "activation_bytes"),
        ("optimizer", "optimizer_bytes"),
        ("caches", "cache_bytes"),
        ("outside torch", "outside_bytes"),
    )
    return ", ".join(
        f"{name} {size_text(measured[key])}" for name, key in named if measured.get(key) is not None
    )


def judge_shared_memory(promise: Promise, results: Mapping[str, GateResult]) -> Finding:
    """Gate ``shm-too-small``: /dev/shm has what the spec says; below ``1g`` beside torch when it says nothing."""
    code = "shm-too-small"
    interpreter = results.get("interpreter")
    if interpreter is None or interpreter.outcome != "measured":
        return unmeasured(code, interpreter)
    size = interpreter.measured.get("shm_bytes")
    measured = size_text(size) if size is not None else f"no {_FOLDER}"
    if promise.shm_size is not None:
        wanted = size_in_bytes(promise.shm_size)
        asked = f"{promise.shm_size} ({size_text(wanted)})"
        enough = size is not None and size >= wanted
        return finding(
            code,
            Verdict.PASS if enough else Verdict.FAIL,
            f"{_FOLDER} has {measured}" if enough else f"{_FOLDER} has {measured}, the spec asks for {asked}",
            measured=measured,
            required=asked,
        )
    loaded = results.get("torch-import")
    if loaded is None or loaded.outcome != "measured":
        return not_applicable(code, "the spec asks for no size, and there is no torch")
    if size is not None and size >= _USUAL_SHARED_MEMORY:
        return finding(code, Verdict.PASS, f"{_FOLDER} has {measured}", measured=measured)
    return finding(
        code,
        Verdict.WARN,
        f"{_FOLDER} has {measured}: DataLoader workers end with a bus error when it is full, and the spec sets no size",
        measured=measured,
        required=f"1g ({size_text(_USUAL_SHARED_MEMORY)}), or a size in the spec",
    )


def size_in_bytes(text: str) -> int:
    """``1g`` as bytes; the units are the engine's."""
    unit = text[-1].lower() if text[-1].isalpha() else ""
    return int(text[: len(text) - len(unit)]) * _UNITS[unit]
