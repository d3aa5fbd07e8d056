"""Tools and packages that matter beside the driver: compilers, profilers, torch, ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.host.probe import Probe

_ONNXRUNTIMES = ("onnxruntime-gpu", "onnxruntime", "onnxruntime-directml", "onnxruntime-rocm")
_COMPILERS = ("gcc", "clang", "cc", "cl")


@dataclass(frozen=True, slots=True)
class Tools:
    """What is there: versions; None and empty for what is not."""

    compiler: str | None
    nvcc: str | None
    profilers: dict[str, str]
    torch: str | None
    onnxruntime: str | None
    notes: tuple[str, ...] = ()


def find_tools(probe: Probe) -> Tools:
    """Find them; a tool that is there and broken is a note."""
    notes: list[str] = []
    compiler = next(
        (
            f"{name} {found}"
            for name in _COMPILERS
            if (found := _version(probe, (name,), r"(\d+\.\d+\.\d+)", notes))
        ),
        None,
    )
    nvcc = _version(probe, ("nvcc", "/usr/local/cuda/bin/nvcc"), r"release [\d.]+, V([\d.]+)", notes)
    profilers = {
        name: found
        for name, places in (
            ("nsys", ("nsys", "/usr/local/cuda/bin/nsys")),
            ("ncu", ("ncu", "/usr/local/cuda/bin/ncu")),
        )
        if (found := _version(probe, places, r"[Vv]ersion (\d[\w.]*)", notes))
    }
    runtime = next(
        (f"{name} {found}" for name in _ONNXRUNTIMES if (found := probe.package(name)) is not None), None
    )
    return Tools(compiler, nvcc, profilers, probe.package("torch"), runtime, tuple(notes))


def _version(probe: Probe, places: Sequence[str], pattern: str, notes: list[str]) -> str | None:
    for place in places:
        answer = probe.run(place, "--version")
        if answer is None:
            continue
        match = re.search(pattern, answer.output)
        if match and not answer.problem:
            return match[1]
        notes.append(f"{place} is there and {answer.problem or 'does not say its version'}")
    return None
