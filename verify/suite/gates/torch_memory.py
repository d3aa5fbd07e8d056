"""What the stack's torch model needs of the device's memory, at the declared batch and concurrency."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from typing import Any, Dict, List

from suite.torch_stack_model import StackModel, build_model, tensors

LEARNING_RATE = 1e-3
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
MEMINFO = Path("/proc/meminfo")


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Run the model, with ``training`` a whole step with its optimizer, and read the peaks.

    Options: those of ``build_model``, ``concurrency`` (how many run at a time), ``training``.
    """
    import torch

    on_gpu = options["device"] == "cuda"
    base = _resident()
    model = build_model(options)
    weights = sum(
        value.numel() * value.element_size()
        for value in [*model.module.parameters(), *model.module.buffers()]
    )
    inputs = sum(value.numel() * value.element_size() for value in model.inputs())
    result: Dict[str, Any] = {
        "device": options["device"],
        "batch": options["batch"],
        "concurrency": options["concurrency"],
        "training": options["training"],
        "weight_bytes": weights,
        "input_bytes": inputs,
        "optimizer_bytes": None,
    }
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    if options["training"]:
        result["optimizer_bytes"] = _train(torch, model)
    else:
        _infer(torch, model, int(options["concurrency"]))
    if on_gpu:
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        # What the device lost beside torch's pool: the context, cuDNN's and cuBLAS's workspaces, other users.
        outside = max(total - free - torch.cuda.memory_reserved(), 0)
        result.update(
            peak_bytes=peak,
            cache_bytes=reserved - peak,
            outside_bytes=outside,
            device_peak_bytes=reserved + outside,
            total_bytes=total,
        )
    else:
        peak = _resident()
        result.update(
            peak_bytes=max(peak - base, 0),
            cache_bytes=None,
            outside_bytes=base,
            device_peak_bytes=peak,
            total_bytes=_memory_limit(),
        )
    result["activation_bytes"] = max(
        result["peak_bytes"] - weights - inputs - (result["optimizer_bytes"] or 0), 0
    )
    return result


def _infer(torch: Any, model: StackModel, concurrency: int) -> None:
    failures: List[BaseException] = []

    def run() -> None:
        try:
            with torch.no_grad():
                model()
        except BaseException as error:  # noqa: BLE001 - raised again below, in the gate's own thread
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _train(torch: Any, model: StackModel) -> int:
    """One step with AdamW on the sum of the outputs; returns the bytes of the optimizer's state."""
    optimizer = torch.optim.AdamW(model.module.parameters(), lr=LEARNING_RATE)
    model.module.train()
    sum(output.float().sum() for output in tensors(model()) if output.is_floating_point()).backward()
    optimizer.step()
    return sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
        if hasattr(value, "numel")
    )


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _memory_limit() -> int:
    """The smaller of the machine's memory and the container's limit, in bytes."""
    total = int(MEMINFO.read_text(encoding="ascii").split()[1]) * 1024
    for path in CGROUP_LIMITS:
        if path.exists():
            text = path.read_text(encoding="ascii").strip()
            return min(total, int(text)) if text.isdigit() else total
    return total
