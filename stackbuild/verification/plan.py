"""The plan of a run: which gates the suite is to run in the image, from what is promised."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from stackbuild.verification.files import ONNX_MODEL, SUITE_FOLDER, TORCH_MODEL, check_name
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.promise import (
    CPU_PROVIDER,
    ONNXRUNTIME_PROVIDERS,
    TENSORRT_PROVIDER,
    Promise,
)

SCHEMA = 1
# Inside the container: the suite's folder is a volume mounted read-only, the results' is in memory.
RESULTS_FOLDER = "/run/stackbuild/results"

# Seconds. The first import of a large framework from a cold disk takes tens of seconds.
IMPORT_LIMIT = 300.0
GATE_LIMIT = 120.0
MATRIX_SIZE = 256
SEED = 20_231_114
# TF32 exists on GPUs only; it comes after fp32, which is measured with the image's own settings.
PRECISIONS = {
    "cpu": ("fp64", "fp32", "fp16", "bf16"),
    "cuda": ("fp64", "fp32", "tf32", "fp16", "bf16"),
}
CONVOLUTION_PRECISIONS = ("fp32", "fp16", "bf16")
IMPORT_PREFIX = "import-"


@dataclass(frozen=True)
class PlannedGate:
    """One gate of the plan; the fields are those that the suite reads."""

    name: str
    worker: str
    function: str
    limit: float = GATE_LIMIT
    needs: tuple[str, ...] = ()
    loads: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def device_missing(promise: Promise, gpus: GpuSelection) -> bool:
    """True when the promised device is a GPU and none is reserved."""
    return promise.device == "cuda" and gpus.none


def provider_missing(promise: Promise, gpus: GpuSelection) -> bool:
    """True when ONNX nodes must run on a GPU and none is reserved; a GPU stack may have a CPU ONNX Runtime."""
    return promise.provider != CPU_PROVIDER and device_missing(promise, gpus)


def plan_gates(promise: Promise, gpus: GpuSelection, *, evidence: bool = False) -> tuple[PlannedGate, ...]:
    """All gates that apply, in order; with ``evidence`` the profile as well.

    Without a lock nobody knows what is installed, so torch and ONNX Runtime are tried; a gate that needs
    the promised device is left out when none is reserved.
    """
    gates = [
        PlannedGate("interpreter", "plain", "suite.gates.interpreter:measure"),
        PlannedGate("distributions", "plain", "suite.gates.distributions:measure"),
    ]
    if promise.device == "cuda" and not gpus.none:
        gates += _reach_gates()
    gates += [
        PlannedGate(
            IMPORT_PREFIX + entry.name,
            "plain",
            "suite.gates.imports:measure",
            IMPORT_LIMIT,
            options={"distribution": entry.name},
        )
        for entry in requested_packages(promise)
    ]
    locked = promise.source == "lock"
    if promise.torch or not locked:
        gates += _torch_gates(promise, here=not device_missing(promise, gpus))
        if evidence and not device_missing(promise, gpus):
            gates.append(_evidence_gate(promise))
    if promise.onnxruntime or not locked:
        gates += _onnxruntime_gates(promise, here=not provider_missing(promise, gpus))
    if not device_missing(promise, gpus):
        gates += _check_gates(promise)
    if promise.device == "cuda" and not gpus.none:
        # Once more at the end: access to devices can be lost while a container runs.
        gates.append(PlannedGate("nvml-at-end", gates[-1].worker, "suite.gates.nvml:measure"))
    return tuple(gates)


def requested_packages(promise: Promise) -> list[Any]:
    """The distributions whose import is a gate of its own; torch and ONNX Runtime have theirs."""
    own = {"torch", *ONNXRUNTIME_PROVIDERS}
    return [entry for entry in promise.distributions if entry.requested and entry.name not in own]


def plan_bytes(gates: Collection[PlannedGate]) -> bytes:
    """The plan as the suite reads it."""
    document = {"schema": SCHEMA, "gates": [vars(gate) for gate in gates]}
    return json.dumps(document, sort_keys=True, indent=1).encode()


def _reach_gates() -> list[PlannedGate]:
    return [
        PlannedGate("device-nodes", "driver", "suite.gates.device_nodes:measure"),
        PlannedGate("cuda-driver", "driver", "suite.gates.cuda_driver:measure"),
        PlannedGate("nvml", "driver", "suite.gates.nvml:measure"),
        PlannedGate("cuda-runtime", "driver", "suite.gates.cuda_runtime:measure"),
    ]


def _torch_gates(promise: Promise, *, here: bool) -> list[PlannedGate]:
    module = "suite.gates.torch_gates"
    gates = [PlannedGate("torch-import", "torch", f"{module}:load", IMPORT_LIMIT, loads=True)]
    if not here:
        return gates
    device = {"device": promise.device, "seed": SEED}
    products = {**device, "precisions": PRECISIONS[promise.device], "size": MATRIX_SIZE}
    convolutions = {**device, "precisions": CONVOLUTION_PRECISIONS}
    stored = {**device, "results_folder": RESULTS_FOLDER}
    model = _model_options(promise)
    if promise.device == "cuda":
        gates.append(_torch_gate("torch-devices", "torch_devices:measure", {}))
    gates += [
        _torch_gate("torch-matmul", "torch_gates:matmul", products),
        _torch_gate("torch-convolution", "torch_convolution:measure", convolutions),
    ]
    if promise.device == "cuda":
        gates.append(_torch_gate("torch-all-reduce", "torch_collective:measure", {}))
    if promise.torch_model is not None:
        exchange = {**model, **stored, "exchange": promise.onnx_model is not None}
        memory = {**model, "concurrency": promise.concurrency, "training": promise.training}
        gates += [
            _torch_gate("torch-model", "torch_model:measure", exchange),
            _torch_gate("torch-memory", "torch_memory:measure", memory),
        ]
    gates += [
        _torch_gate("torch-repeatable", "torch_repeat:repeat", {**model, **device}),
        _torch_gate("torch-checkpoint", "torch_repeat:checkpoint", stored),
    ]
    return gates


def _torch_gate(name: str, function: str, options: dict[str, Any]) -> PlannedGate:
    return PlannedGate(name, "torch", f"suite.gates.{function}", needs=("torch-import",), options=options)


def _evidence_gate(promise: Promise) -> PlannedGate:
    options = {"device": promise.device, "seed": SEED, "results_folder": RESULTS_FOLDER}
    return PlannedGate(
        "torch-evidence",
        "torch",
        "suite.gates.torch_evidence:measure",
        IMPORT_LIMIT,
        needs=("torch-import",),
        options={**_model_options(promise), **options},
    )


def _model_options(promise: Promise) -> dict[str, Any]:
    """What building the stack's torch model takes; empty when it has none."""
    if promise.torch_model is None:
        return {}
    return {
        "model": f"{SUITE_FOLDER}/{TORCH_MODEL}",
        "function": promise.torch_model_function,
        "device": promise.device,
        "batch": promise.batch,
        "seed": SEED,
    }


def _check_gates(promise: Promise) -> list[PlannedGate]:
    return [
        PlannedGate(
            f"check-{number}",
            "checks",
            "suite.gates.stack_check:measure",
            options={
                "file": f"{SUITE_FOLDER}/{check_name(number)}",
                "device": promise.device,
                "seed": SEED,
                "batch": promise.batch,
                "results_folder": RESULTS_FOLDER,
            },
        )
        for number in range(len(promise.checks))
    ]


def _onnxruntime_gates(promise: Promise, *, here: bool) -> list[PlannedGate]:
    module = "suite.gates.onnxruntime_gates"
    # Not loaded in the worker: the import of ONNX Runtime 1.31 starts a thread, which a fork does not bring
    # along and whose locks it may find taken. Each gate imports it anew, in a few tenths of a second.
    gates = [PlannedGate("ort-import", "onnxruntime", f"{module}:load", IMPORT_LIMIT)]
    if not here:
        return gates
    providers = [promise.provider]
    if promise.provider != CPU_PROVIDER:
        # A user's session lists the CPU last; where nodes really ran is then what counts.
        providers.append(CPU_PROVIDER)
    options = {"providers": providers, "profile_folder": RESULTS_FOLDER, "seed": SEED}
    needs = ("ort-import",)
    gates.append(
        PlannedGate("ort-session", "onnxruntime", f"{module}:reference_session", needs=needs, options=options)
    )
    if promise.onnx_model:
        options = {**options, "model": f"{SUITE_FOLDER}/{ONNX_MODEL}"}
        gates.append(
            PlannedGate(
                "ort-model-session", "onnxruntime", f"{module}:stack_session", needs=needs, options=options
            )
        )
    if promise.tensorrt:
        # The stack's own model where there is one: TensorRT is asked for because of it.
        function = "stack_session" if promise.onnx_model else "reference_session"
        asked = {**options, "providers": [TENSORRT_PROVIDER, *providers]}
        gates.append(
            PlannedGate(
                "ort-tensorrt",
                "onnxruntime",
                f"{module}:{function}",
                IMPORT_LIMIT,
                needs=needs,
                options=asked,
            )
        )
    if promise.onnx_model and promise.torch_model is not None:
        asked = {**options, "results_folder": RESULTS_FOLDER}
        gates.append(
            PlannedGate(
                "models-agree",
                "onnxruntime",
                "suite.gates.onnx_agreement:measure",
                needs=("ort-import", "torch-model"),
                options=asked,
            )
        )
    return gates
