"""Repeatability: the same seed twice, and a checkpoint saved and restored, compared bit by bit."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Dict

from suite.torch_stack_model import build_model, tensors

STEPS = 3
LEARNING_RATE = 1e-2
# cuBLAS is repeatable only with a fixed workspace (cuBLAS documentation, "Results Reproducibility").
WORKSPACE = ":4096:8"


def repeat(options: Dict[str, Any]) -> Dict[str, Any]:
    """Train a small network twice from one seed in deterministic mode, and run the stack's own model twice.

    Options: ``device``, ``seed``; with ``model`` those of ``build_model`` as well.
    """
    torch = _deterministic()
    first, second = _trained(torch, options), _trained(torch, options)
    own = None
    if options.get("model"):
        outputs = []
        for _ in range(2):
            with torch.no_grad():
                outputs.append(tensors(build_model(options)()))
        own = len(outputs[0]) == len(outputs[1]) and all(_same(torch, a, b) for a, b in zip(*outputs))
    return {
        "device": options["device"],
        "seed": options["seed"],
        "precision": "fp32",
        "steps": STEPS,
        "threads": torch.get_num_threads(),
        "differing": _differing(torch, first, second),
        "own_model": own,
        "model_sha256": _file_hash(options.get("model")),
    }


def checkpoint(options: Dict[str, Any]) -> Dict[str, Any]:
    """Save a trained network's state, restore it into a new one, and compare state and outputs.

    Options: ``device``, ``seed``, ``results_folder``.
    """
    torch = _deterministic()
    state = _trained(torch, options)
    path = Path(options["results_folder"]) / "checkpoint.pt"
    torch.save(state, path)
    restored = torch.load(path, map_location=options["device"], weights_only=True)
    size = path.stat().st_size
    path.unlink()
    before, after = _network(torch, options["device"]), _network(torch, options["device"])
    before.load_state_dict(state)
    after.load_state_dict(restored)
    probe = _images(torch, options)
    with torch.no_grad():
        same_outputs = _same(torch, before.eval()(probe), after.eval()(probe))
    return {
        "device": options["device"],
        "bytes": size,
        "differing": _differing(torch, state, restored),
        "same_outputs": same_outputs,
    }


def _deterministic() -> Any:
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = WORKSPACE  # read when CUDA is first used
    import torch

    # The same switch as use_deterministic_algorithms(True), which loads the compiler to tell it as well.
    torch.set_deterministic_debug_mode("error")
    torch.backends.cudnn.benchmark = False
    return torch


def _network(torch: Any, device: str) -> Any:
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(3, 8, 3, padding=1),
        layers.BatchNorm2d(8),
        layers.ReLU(),
        layers.Dropout(0.1),
        layers.Flatten(),
        layers.Linear(8 * 16 * 16, 10),
    ).to(device)


def _images(torch: Any, options: Dict[str, Any]) -> Any:
    generator = torch.Generator().manual_seed(int(options["seed"]))
    return torch.randn(8, 3, 16, 16, generator=generator).to(options["device"])


def _trained(torch: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    torch.manual_seed(int(options["seed"]))
    network, images = _network(torch, options["device"]), _images(torch, options)
    for _ in range(STEPS):
        network.zero_grad()
        network(images).square().mean().backward()
        # By hand: torch.optim's step loads the compiler, which takes seconds.
        with torch.no_grad():
            for weight in network.parameters():
                weight.sub_(weight.grad, alpha=LEARNING_RATE)
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _differing(torch: Any, one: Dict[str, Any], other: Dict[str, Any]) -> Any:
    return sorted(name for name in one if name not in other or not _same(torch, one[name], other[name]))


def _same(torch: Any, one: Any, other: Any) -> bool:
    """Whether two tensors are equal bit by bit, NaN and the sign of zero included."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    left, right = (value.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for value in (one, other))
    return bool(torch.equal(left, right))


def _file_hash(path: Any) -> Any:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None
