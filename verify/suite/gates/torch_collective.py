"""An all-reduce over all GPUs through NCCL, in one process."""

from __future__ import annotations

from typing import Any, Dict

ELEMENTS = 1 << 20


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Sum a different constant from each GPU on all of them; with one GPU there is nothing to do. No options."""
    del options
    import torch
    from torch.cuda import nccl

    count = torch.cuda.device_count()
    if count < 2:
        return {"count": count}
    values = [torch.full((ELEMENTS,), float(index + 1), device="cuda:%d" % index) for index in range(count)]
    nccl.all_reduce(values)
    expected = count * (count + 1) / 2.0
    wrong = [index for index, value in enumerate(values) if not bool((value.cpu() == expected).all())]
    return {"count": count, "expected": expected, "wrong": wrong, "nccl": list(nccl.version())}
