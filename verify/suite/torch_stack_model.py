"""The stack's own torch model: how it is found, built and fed.

``verify.torch-model: models/ours.py:build`` names a function that returns the model and its inputs::

    def build(batch: int = 1):
        return MyModel().eval(), torch.zeros(batch, 3, 224, 224)

Inputs are one tensor, a tuple of positional or a mapping of keyword arguments. A function that takes
``batch`` is given the spec's ``verify.batch``.
"""

from __future__ import annotations

import importlib.util
import inspect
from typing import Any, Dict, List, Tuple


class StackModel:
    """A built model with its inputs, on a device."""

    def __init__(self, module: Any, positional: Tuple[Any, ...], named: Dict[str, Any]) -> None:
        self.module = module
        self.positional = positional
        self.named = named

    def __call__(self) -> Any:
        """Run the model on its inputs."""
        return self.module(*self.positional, **self.named)

    def inputs(self) -> List[Any]:
        """All tensors that go in, in order."""
        return tensors((self.positional, self.named))


def build_model(options: Dict[str, Any]) -> StackModel:
    """Build the model and move it and its inputs to the device.

    Options: ``model`` (a path), ``function``, ``device``, ``batch``, ``seed``.
    """
    import torch

    torch.manual_seed(int(options["seed"]))
    spec = importlib.util.spec_from_file_location("stack_model", options["model"])
    if spec is None or spec.loader is None:
        raise ImportError("%s is no Python file" % options["model"])
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    build = getattr(source, options["function"])
    takes_batch = "batch" in inspect.signature(build).parameters
    built = build(batch=int(options["batch"])) if takes_batch else build()
    if not (isinstance(built, tuple) and len(built) == 2 and isinstance(built[0], torch.nn.Module)):
        raise TypeError(
            "%s must return (torch.nn.Module, inputs), it returned %s"
            % (options["function"], type(built).__name__)
        )
    module, inputs = built
    device = options["device"]
    module = module.to(device)
    if isinstance(inputs, dict):
        return StackModel(module, (), {name: moved(value, device) for name, value in inputs.items()})
    listed = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    return StackModel(module, tuple(moved(value, device) for value in listed), {})


def moved(value: Any, device: str) -> Any:
    """A tensor on the device; anything else as it is."""
    return value.to(device) if hasattr(value, "to") else value


def tensors(value: Any) -> List[Any]:
    """All tensors in a nest of tuples, lists and mappings, in order; model outputs are such a nest."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [found for entry in value.values() for found in tensors(entry)]
    if isinstance(value, (tuple, list)):
        return [found for entry in value for found in tensors(entry)]
    return []
