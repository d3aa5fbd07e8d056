"""An exported ONNX model against the torch model it comes from, on the same inputs, in a process without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from suite.gates.torch_model import EXCHANGE

TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Run the ONNX model on what the torch model was given, and compare what came out.

    Inputs and outputs are matched by their order. Options: ``model``, ``providers``, ``results_folder``.
    """
    import numpy
    import onnxruntime

    with numpy.load(Path(options["results_folder"]) / EXCHANGE) as left:
        given = [left[name] for name in _numbered(left.files, "input_")]
        expected = [left[name] for name in _numbered(left.files, "output_")]
    session = onnxruntime.InferenceSession(options["model"], providers=options["providers"])
    entries = session.get_inputs()
    if len(entries) != len(given):
        raise ValueError("the ONNX model takes %d inputs, the torch model %d" % (len(entries), len(given)))
    feeds = {
        entry.name: value.astype(TYPES.get(entry.type, value.dtype)) for entry, value in zip(entries, given)
    }
    outputs = session.run(None, feeds)
    if len(outputs) != len(expected):
        raise ValueError("the ONNX model has %d outputs, the torch model %d" % (len(outputs), len(expected)))
    return {
        "session_providers": list(session.get_providers()),
        "outputs": [
            _compare(numpy, entry.name, *pair)
            for entry, *pair in zip(session.get_outputs(), outputs, expected)
        ],
    }


def _compare(numpy: Any, name: str, actual: Any, expected: Any) -> Dict[str, Any]:
    result: Dict[str, Any] = {
        "name": name,
        "shape": list(actual.shape),
        "expected_shape": list(expected.shape),
    }
    if actual.shape != expected.shape:
        return {**result, "error": None, "finite": True}
    difference = numpy.abs(actual.astype("float64") - expected.astype("float64"))
    scale = float(numpy.abs(expected.astype("float64")).max()) if expected.size else 0.0
    worst = float(difference.max()) if difference.size else 0.0
    finite = bool(numpy.isfinite(difference).all())
    return {**result, "finite": finite, "error": worst / (scale or 1.0) if finite else None}


def _numbered(names: Any, prefix: str) -> Any:
    return sorted(
        (name for name in names if name.startswith(prefix)), key=lambda name: int(name[len(prefix) :])
    )
