"""Evidence of how fast and by what means, never a gate: a profile, back-ends, rates.

The rates are of this run on this device with these clocks (the finding ``nvml-agrees`` has them), and no benchmark.
"""

from __future__ import annotations

import base64
import gzip
import re
import shutil
import time
from pathlib import Path
from typing import Any, Callable, Dict

from suite.torch_stack_model import build_model

WARM_UPS, REPEATS = 3, 10
TOP_OPERATORS = 10
# A trace travels in the gate's answer, which has at most 8 MiB.
LARGEST_TRACE = 4 * 1024 * 1024
MATRIX = {"cpu": 512, "cuda": 8192}
COPY_BYTES = {"cpu": 1 << 26, "cuda": 1 << 30}
# With stacks the profiler counts Python's own frames as well, its own among them.
PYTHON_FRAME = re.compile(r"\.py\(\d+\)|<built-in |^nn\.Module: |^ProfilerStep")
COMPILERS = ("cc", "gcc", "clang")


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Profile the stack's model, or a small network, and measure rates and back-ends.

    Options: ``device``, ``seed``, ``results_folder``; with ``model`` those of ``build_model``.
    """
    import torch

    device = options["device"]
    step = _step(torch, options)
    return {
        "device": device,
        "threads": torch.get_num_threads(),
        **_profile(torch, step, device, Path(options["results_folder"])),
        "tflops": {
            name: _tflops(torch, getattr(torch, name), device) for name in ("float32", "bfloat16", "float16")
        },
        "copy_gbytes_per_second": _copy_rate(torch, device),
        "attention": _attention(torch, device),
        "graph": _graph(torch, step) if device == "cuda" else None,
        "compile": _compiled(torch, device),
    }


def _step(torch: Any, options: Dict[str, Any]) -> Callable[[], Any]:
    if options.get("model"):
        model = build_model(options)
        call: Callable[[], Any] = model
    else:
        layers = torch.nn
        network = layers.Sequential(layers.Linear(256, 1024), layers.ReLU(), layers.Linear(1024, 256))
        network, inputs = network.to(options["device"]), torch.randn(64, 256).to(options["device"])

        def call() -> Any:
            return network(inputs)

    def step() -> Any:
        with torch.no_grad():
            return call()

    return step


def _profile(torch: Any, step: Callable[[], Any], device: str, folder: Path) -> Dict[str, Any]:
    from torch.profiler import ProfilerActivity, profile, schedule

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    trace = folder / "trace.json"
    plan = schedule(wait=1, warmup=1, active=2)
    with profile(
        activities=activities,
        schedule=plan,
        record_shapes=True,
        with_stack=True,
        on_trace_ready=lambda done: done.export_chrome_trace(str(trace)),
    ) as profiler:
        for _ in range(4):
            step()
            _wait(torch, device)
            profiler.step()
    averages = profiler.key_averages(group_by_input_shape=True)
    rows = [_row(event, device) for event in averages if not PYTHON_FRAME.search(event.key)]
    rows.sort(key=lambda row: row["self_us"], reverse=True)
    total = sum(row["self_us"] for row in rows) or 1.0
    packed = gzip.compress(trace.read_bytes(), mtime=0) if trace.exists() else b""
    trace.unlink(missing_ok=True)
    return {
        "operators": [dict(row, share=row["self_us"] / total) for row in rows[:TOP_OPERATORS]],
        "transfers": sum(row["count"] for row in rows if row["name"].startswith(("Memcpy", "aten::copy_"))),
        "synchronisations": sum(row["count"] for row in rows if "Synchronize" in row["name"]),
        "trace": base64.b64encode(packed).decode("ascii") if len(packed) <= LARGEST_TRACE else "",
        "trace_bytes": len(packed),
    }


def _row(event: Any, device: str) -> Dict[str, Any]:
    # self_cuda_time_total until torch 2.5, self_device_time_total since.
    on_device = getattr(event, "self_device_time_total", getattr(event, "self_cuda_time_total", 0))
    return {
        "name": event.key,
        "count": event.count,
        "self_us": float(on_device if device == "cuda" else event.self_cpu_time_total),
        "host_us": float(event.self_cpu_time_total),
        "shapes": str(event.input_shapes)[:200],
    }


def _timed(torch: Any, device: str, work: Callable[[], Any]) -> float:
    """Seconds of one repetition, after warm-up."""
    for _ in range(WARM_UPS):
        work()
    _wait(torch, device)
    began = time.monotonic()
    for _ in range(REPEATS):
        work()
    _wait(torch, device)
    return (time.monotonic() - began) / REPEATS


def _tflops(torch: Any, dtype: Any, device: str) -> Any:
    size = MATRIX[device]
    try:
        left = torch.ones(size, size, device=device, dtype=dtype)
        return round(2 * size**3 / _timed(torch, device, lambda: left @ left) / 1e12, 3)
    except (RuntimeError, NotImplementedError) as refusal:
        return str(refusal)[:200]


def _copy_rate(torch: Any, device: str) -> float:
    source = torch.ones(COPY_BYTES[device], device=device, dtype=torch.uint8)
    target = torch.empty_like(source)
    # Each byte is read once and written once.
    return round(2 * COPY_BYTES[device] / _timed(torch, device, lambda: target.copy_(source)) / 1e9, 1)


def _attention(torch: Any, device: str) -> Dict[str, str]:
    """Which back-ends of scaled_dot_product_attention run here: ``yes``, or why not."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return {}
    query = torch.randn(
        1, 8, 128, 64, device=device, dtype=torch.float16 if device == "cuda" else torch.float32
    )
    found = {}
    for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
        if not hasattr(SDPBackend, name):
            continue
        try:
            with sdpa_kernel(getattr(SDPBackend, name)):
                torch.nn.functional.scaled_dot_product_attention(query, query, query)
            found[name.lower()] = "yes"
        except RuntimeError as refusal:
            found[name.lower()] = str(refusal).splitlines()[0][:200]
    return found


def _graph(torch: Any, step: Callable[[], Any]) -> str:
    """``yes`` when the step can be captured as a CUDA graph and replayed, or why not."""
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        graph.replay()
        torch.cuda.synchronize()
    except RuntimeError as refusal:
        return str(refusal).splitlines()[0][:200]
    return "yes"


def _compiled(torch: Any, device: str) -> str:
    """Whether torch.compile works here; it needs a C compiler in the image."""
    if not any(shutil.which(name) for name in COMPILERS):
        return "no C compiler in the image"
    values = torch.ones(64, device=device)
    try:
        result = torch.compile(lambda x: torch.relu(x) * 2 + 1)(values)
    except Exception as refusal:  # noqa: BLE001 - whatever the compiler raises is the evidence
        return "%s: %s" % (type(refusal).__name__, str(refusal)[:200])
    return "yes" if bool((result == 3).all()) else "wrong values"


def _wait(torch: Any, device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
