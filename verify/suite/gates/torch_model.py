"""The stack's own torch model on the intended device, and where each of its operators ran."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List

from suite.torch_stack_model import build_model, tensors

EXCHANGE = "torch-model.npz"


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Run the model once with every operator watched.

    Options: those of ``build_model``, ``exchange`` (whether to leave inputs and outputs for a comparison
    with ONNX Runtime) and ``results_folder``.
    """
    import torch

    model = build_model(options)
    watch = _watch()
    began = time.monotonic()
    with torch.no_grad(), watch:
        outputs = tensors(model())
    results = [output.to("cpu") for output in outputs]  # also waits for the device
    seconds = time.monotonic() - began
    weights = [*model.module.parameters(), *model.module.buffers()]
    if options.get("exchange"):
        _leave(Path(options["results_folder"]) / EXCHANGE, model.inputs(), results)
    return {
        "device": options["device"],
        "batch": options["batch"],
        "seed": options["seed"],
        "seconds": round(seconds, 6),
        "parameters": sum(weight.numel() for weight in weights),
        "weight_bytes": sum(weight.numel() * weight.element_size() for weight in weights),
        "weight_devices": sorted({weight.device.type for weight in weights}),
        "precisions": sorted({str(weight.dtype).replace("torch.", "") for weight in weights}),
        "operators": {device: dict(counts) for device, counts in watch.operators.items()},
        "transfers": watch.transfers,
        "synchronisations": watch.synchronisations,
        "outputs": [
            {
                "shape": list(output.shape),
                "device": output.device.type,
                "finite": bool(torch.isfinite(result).all()) if result.is_floating_point() else True,
            }
            for output, result in zip(outputs, results)
        ],
    }


def _watch() -> Any:
    """A dispatch mode that sees every operator below autograd, with what it returned."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.operators: Dict[str, Counter[str]] = {}
            self.transfers = 0
            self.synchronisations = 0

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled here, and loading the compiler takes seconds

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            result = function(*args, **(kwargs or {}))
            name = str(function).split(".")[1] if "." in str(function) else str(function)
            outputs = tensors(result)
            if name == "_local_scalar_dense":
                self.synchronisations += 1
            before = {tensor.device.type for tensor in tensors((args, kwargs or {})) if tensor.dim()}
            for device in {tensor.device.type for tensor in outputs if tensor.dim()}:
                self.operators.setdefault(device, Counter())[name] += 1
                if before and device not in before:
                    self.transfers += 1
            return result

    return Watch()


def _leave(path: Path, inputs: List[Any], outputs: List[Any]) -> None:
    import numpy

    arrays = {"input_%d" % number: _array(value) for number, value in enumerate(inputs)}
    arrays.update({"output_%d" % number: _array(value) for number, value in enumerate(outputs)})
    numpy.savez(path, **arrays)


def _array(value: Any) -> Any:
    import torch

    # numpy has no bfloat16.
    tensor = value.detach().to("cpu")
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
