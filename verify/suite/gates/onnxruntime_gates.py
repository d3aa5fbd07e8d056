"""ONNX Runtime, in a process that never imports torch: the import, and sessions on the intended provider.

A listed provider proves nothing: a session that cannot load it goes on with the CPU. So the session's own
providers and the place where each node ran, from ORT's profile, are what is measured.
"""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Tuple

from suite import reference_model
from suite.library_owners import mapped_with_owners

REFERENCE_MODEL = "models/reference.onnx"
# Suffix of the profile's event for the computation itself; fences and session events are no nodes.
KERNEL_EVENT = "_kernel_time"
# What a dimension that the model leaves open becomes.
OPEN_DIMENSION = 1


def load(options: Dict[str, Any]) -> Dict[str, Any]:
    """Import onnxruntime; returns what the build says of itself. Takes no options."""
    del options
    began = time.monotonic()
    import onnxruntime

    return {
        "seconds": round(time.monotonic() - began, 4),
        "version": onnxruntime.__version__,
        "available_providers": list(onnxruntime.get_available_providers()),
        "build": onnxruntime.get_build_info() if hasattr(onnxruntime, "get_build_info") else None,
        "cuda": _built_for(),
        "file": onnxruntime.__file__,
        "torch_imported": "torch" in sys.modules,
    }


def _built_for() -> str:
    """The CUDA release that a GPU build records of itself; empty for a CPU build."""
    # Written by the build since 1.7 (tools/python/…/setup.py: build_and_package_info).
    try:
        info = importlib.import_module("onnxruntime.capi.build_and_package_info")
    except ImportError:
        return ""
    return str(getattr(info, "cuda_version", "") or "")


def reference_session(options: Dict[str, Any]) -> Dict[str, Any]:
    """Run the shipped model and compare with the reference. Options: ``providers``, ``profile_folder``."""
    import numpy

    content = pkgutil.get_data("suite", REFERENCE_MODEL)
    feeds = {"x": numpy.array(reference_model.inputs(), dtype=numpy.float32)}
    result, outputs = _run(content, feeds, options)
    expected = reference_model.expected()
    scale = max(abs(value) for row in expected for value in row)
    worst = 0.0
    for row, expected_row in zip(outputs[0].tolist(), expected):
        for value, wanted in zip(row, expected_row):
            worst = max(worst, abs(value - wanted) / scale) if math.isfinite(value) else math.inf
    result["shape"] = list(outputs[0].shape)
    result["finite"] = math.isfinite(worst)
    result["error"] = worst if math.isfinite(worst) else None
    return result


def stack_session(options: Dict[str, Any]) -> Dict[str, Any]:
    """Run the stack's own model on made-up inputs of the shapes that it declares.

    Options: ``model`` (a path), ``providers``, ``profile_folder``, ``seed``.
    """
    import numpy
    import onnxruntime

    described = onnxruntime.InferenceSession(options["model"], providers=["CPUExecutionProvider"])
    generator = numpy.random.default_rng(int(options["seed"]))
    feeds = {entry.name: _made_up(numpy, generator, entry) for entry in described.get_inputs()}
    result, outputs = _run(options["model"], feeds, options)
    result["outputs"] = [
        {"shape": list(value.shape), "finite": bool(numpy.isfinite(value).all())}
        for value in outputs
        if isinstance(value, numpy.ndarray) and value.dtype.kind in "fiub"
    ]
    result["inputs"] = {name: list(value.shape) for name, value in feeds.items()}
    return result


def _made_up(numpy: Any, generator: Any, entry: Any) -> Any:
    types = {
        "tensor(float)": numpy.float32,
        "tensor(double)": numpy.float64,
        "tensor(float16)": numpy.float16,
        "tensor(int64)": numpy.int64,
        "tensor(int32)": numpy.int32,
        "tensor(int8)": numpy.int8,
        "tensor(uint8)": numpy.uint8,
        "tensor(bool)": numpy.bool_,
    }
    if entry.type not in types:
        raise TypeError("no inputs of type %s can be made up for %s" % (entry.type, entry.name))
    dtype = numpy.dtype(types[entry.type])
    shape = [size if isinstance(size, int) and size > 0 else OPEN_DIMENSION for size in entry.shape]
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    # Small integers are valid as token numbers, indices and flags alike.
    return generator.integers(0, 2, shape).astype(dtype)


def _run(model: Any, feeds: Dict[str, Any], options: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Any]]:
    """Make a profiled session, run it once, and tell where each node ran."""
    import onnxruntime

    session_options = onnxruntime.SessionOptions()
    session_options.enable_profiling = True
    session_options.profile_file_prefix = str(Path(options["profile_folder"]) / "onnxruntime-profile")
    began = time.monotonic()
    session = onnxruntime.InferenceSession(model, session_options, providers=options["providers"])
    created = time.monotonic()
    outputs = session.run(None, feeds)
    ran = time.monotonic()
    profile = Path(session.end_profiling())
    placed = placement(json.loads(profile.read_text(encoding="utf-8")))
    profile.unlink()
    result = {
        "requested_providers": options["providers"],
        "available_providers": list(onnxruntime.get_available_providers()),
        "session_providers": list(session.get_providers()),
        "placement": placed,
        "libraries": mapped_with_owners(),
        "torch_imported": "torch" in sys.modules,
        "create_seconds": round(created - began, 6),
        "run_seconds": round(ran - created, 6),
    }
    return result, outputs


def placement(events: List[Dict[str, Any]]) -> Dict[str, Dict[str, int]]:
    """How many nodes of each operator ran on each provider: provider → operator → nodes, from ORT's profile."""
    placed: Dict[str, Counter[str]] = {}
    for event in events:
        if event.get("cat") == "Node" and event.get("name", "").endswith(KERNEL_EVENT):
            arguments = event["args"]
            placed.setdefault(arguments.get("provider", ""), Counter())[arguments.get("op_name", "")] += 1
    return {provider: dict(operators) for provider, operators in placed.items()}
