"""What specs, locks and configurations promise, and the plan that follows."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from stackbuild.annotate.pin_list import BasePin, PinList
from stackbuild.errors import LockError, SpecError
from stackbuild.lock.model import PlatformLock
from stackbuild.spec.model import StackSpec
from stackbuild.verification.files import stack_files
from stackbuild.verification.gpus import GpuSelection
from stackbuild.verification.plan import plan_bytes, plan_gates
from stackbuild.verification.promise import (
    Promise,
    PromisedFile,
    promise_of_image,
    promise_of_lock,
    promise_of_pins,
    promise_of_spec,
)
from tests.verification.support import cpu_promise, cuda_promise

DIGEST = "sha256:" + "a" * 64
ALL, NONE = GpuSelection(count=-1), GpuSelection()


def test_a_lock_promises_every_wheel_and_names_what_was_asked_for(tmp_path: Path) -> None:
    promise = _promise(
        tmp_path,
        frameworks={"torch": {"version": "2.13.0", "variant": "cpu"}, "onnxruntime": {"version": "1.31.1"}},
        wheels=[
            _wheel("torch", "2.13.0+cpu", requested=True),
            _wheel("numpy"),
            _wheel("onnxruntime", "1.31.1"),
        ],
    )
    assert promise.source == "lock"
    assert promise.device == "cpu"
    assert (promise.python, promise.python_executable) == ("3.11.2", "/opt/venv/bin/python")
    assert (promise.os, promise.glibc) == ("debian 12", "2.36")
    assert [entry.name for entry in promise.distributions] == ["numpy", "onnxruntime", "torch"]
    assert [entry.name for entry in promise.distributions if entry.requested] == ["torch"]
    assert (promise.torch, promise.torch_cuda) == ("2.13.0+cpu", "")
    assert promise.provider == "CPUExecutionProvider"


@pytest.mark.parametrize(
    ("frameworks", "wheels", "env", "torch_cuda", "provider"),
    [
        ({"torch": {"variant": "cu130"}}, [("torch", "2.14.1+cu130")], [], "13.0", "CUDAExecutionProvider"),
        (
            {"torch": {"variant": "cu130", "index": "default"}},
            [("torch", "2.14.1")],
            [],
            "13.0",
            "CUDAExecutionProvider",
        ),
        ({}, [("onnxruntime-gpu", "1.31.1")], [], None, "CUDAExecutionProvider"),
        ({}, [("onnxruntime", "1.31.1")], ["CUDA_VERSION=13.0.3"], None, "CPUExecutionProvider"),
    ],
)
def test_what_makes_a_gpu_stack(
    tmp_path: Path,
    frameworks: dict[str, Any],
    wheels: list[tuple[str, str]],
    env: list[str],
    torch_cuda: str | None,
    provider: str,
) -> None:
    locked = [_wheel(name, version) for name, version in wheels]
    promise = _promise(tmp_path, frameworks=frameworks, wheels=locked, env=env)
    assert promise.device == "cuda"
    assert promise.torch_cuda == torch_cuda
    assert promise.provider == provider


def test_the_specs_verify_block_is_part_of_the_promise(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"model")
    promise = _promise(
        tmp_path,
        overrides=["Nvidia_NCCL-cu13==2.30.7"],
        exclude=["onnxruntime"],
        verify={
            "onnx-model": "m.onnx",
            "allow-cpu-ops": ["Shape"],
            "shm-size": "1g",
            "tolerance": {"fp32": 1e-4},
        },
    )
    assert promise.onnx_model == str(tmp_path / "m.onnx")
    assert promise.onnx_model_sha256 == hashlib.sha256(b"model").hexdigest()
    assert promise.allow_cpu_ops == ("Shape",)
    assert promise.shm_size == "1g"
    assert promise.tolerance == {"fp32": 1e-4}
    assert promise.decided == ("nvidia-nccl-cu13", "onnxruntime")


def test_a_model_that_is_not_there_is_a_mistake_of_the_spec(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"m\.onnx does not exist") as caught:
        _promise(tmp_path, verify={"onnx-model": "m.onnx"})
    assert caught.value.code == "onnx-model-not-found"


def test_an_external_stack_promises_what_its_spec_names(tmp_path: Path) -> None:
    spec = StackSpec.model_validate(
        {
            "schema": 1,
            "name": "theirs",
            "external": "registry.example/theirs:1",
            "python": "3.11",
            "frameworks": {"torch": {"version": "2.8.0", "variant": "cu128"}},
        }
    )
    promise = promise_of_spec(spec, "linux/amd64", tmp_path)
    assert (promise.source, promise.device) == ("spec", "cuda")
    assert (promise.python, promise.torch, promise.torch_cuda) == ("3.11", "2.8.0", "12.8")


def test_an_image_without_a_lock_promises_what_its_configuration_says() -> None:
    assert promise_of_image({"Env": ["PATH=/bin"]}, "linux/amd64").device == "cpu"
    promise = promise_of_image({"Env": ["CUDA_VERSION=13.0.3"]}, "linux/amd64")
    assert (promise.device, promise.provider) == ("cuda", "CUDAExecutionProvider")


def test_a_pin_list_promises_what_it_names() -> None:
    pins = PinList(
        stack="torch-cu130",
        os="ubuntu 24.04",
        base=BasePin(name="nvidia/cuda:13.0.3-base-ubuntu24.04", digest=DIGEST),
        glibc="2.39",
        python="3.12.3",
        cuda="13.0.96",
        torch="2.14.1",
        torch_variant="cu130",
        onnxruntime="1.31.1",
        onnxruntime_package="onnxruntime-gpu",
        lock_sha256="c" * 64,
    )
    promise = promise_of_pins(pins, "linux/amd64")
    assert (promise.source, promise.stack, promise.device) == ("labels", "torch-cu130", "cuda")
    assert (promise.torch, promise.torch_cuda) == ("2.14.1", "13.0")
    assert (promise.python, promise.python_executable) == ("3.12.3", "/opt/venv/bin/python")
    assert promise.provider == "CUDAExecutionProvider"
    assert promise.distributions == ()


def test_the_digest_changes_with_anything_promised() -> None:
    assert cpu_promise().digest == cpu_promise().digest
    assert cpu_promise().digest != cpu_promise(tolerance={"fp32": 1e-4}).digest


def test_the_plan_of_a_cpu_stack_runs_every_gate_on_the_cpu() -> None:
    gates = {gate.name: gate for gate in plan_gates(cpu_promise(), NONE)}
    assert list(gates) == [
        "interpreter",
        "distributions",
        "import-numpy",
        "torch-import",
        "torch-matmul",
        "torch-convolution",
        "torch-repeatable",
        "torch-checkpoint",
        "ort-import",
        "ort-session",
    ]
    assert gates["torch-matmul"].options["device"] == "cpu"
    assert gates["ort-session"].options["providers"] == ["CPUExecutionProvider"]
    assert gates["torch-matmul"].worker != gates["ort-session"].worker, "ORT never meets torch"
    assert [gate.name for gate in gates.values() if gate.loads] == ["torch-import"]


def test_the_plan_of_a_gpu_stack_leaves_out_what_needs_a_gpu_where_there_is_none() -> None:
    reserved = {gate.name: gate for gate in plan_gates(cuda_promise(), ALL)}
    without = [gate.name for gate in plan_gates(cuda_promise(), NONE)]
    reach = {"device-nodes", "cuda-driver", "nvml", "cuda-runtime", "nvml-at-end"}
    computing = {
        "torch-devices",
        "torch-matmul",
        "torch-convolution",
        "torch-all-reduce",
        "torch-repeatable",
        "torch-checkpoint",
        "ort-session",
    }
    assert set(reserved) - set(without) == computing | reach
    assert "tf32" in reserved["torch-matmul"].options["precisions"]
    assert list(reserved)[-1] == "nvml-at-end", "access can be lost while the container runs"
    assert reserved["torch-matmul"].options["device"] == "cuda"
    assert reserved["ort-session"].options["providers"] == ["CUDAExecutionProvider", "CPUExecutionProvider"]


def test_a_cpu_onnxruntime_in_a_gpu_stack_needs_no_gpu() -> None:
    promise = cuda_promise(onnxruntime_distribution="onnxruntime")
    assert "ort-session" in [gate.name for gate in plan_gates(promise, NONE)]


def test_frameworks_that_a_lock_lacks_are_not_tried_and_without_a_lock_they_are() -> None:
    locked = cpu_promise(torch=None, onnxruntime=None, distributions=())
    assert [gate.name for gate in plan_gates(locked, NONE)] == ["interpreter", "distributions"]
    names = [gate.name for gate in plan_gates(Promise(source="nothing"), NONE)]
    assert {"torch-import", "ort-import"} <= set(names)


def test_the_stacks_own_model_gets_a_session() -> None:
    promise = cpu_promise(onnx_model="/x/m.onnx", onnx_model_sha256="0" * 64)
    gate = plan_gates(promise, NONE)[-1]
    assert gate.name == "ort-model-session"
    assert gate.options["model"] == "/run/stackbuild/suite/stack-model.onnx"


def test_the_plan_is_the_same_bytes_each_time() -> None:
    first = plan_bytes(plan_gates(cpu_promise(), NONE))
    assert first == plan_bytes(plan_gates(cpu_promise(), NONE))
    assert json.loads(first)["schema"] == 1


def _wheel(name: str, version: str = "1.0", *, requested: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "index": "default",
        "file": f"{name}-{version}-py3-none-any.whl",
        "sha256": "b" * 64,
        "size": 1,
        "group": "other",
        "requested": requested,
    }


def _promise(
    folder: Path,
    *,
    wheels: list[dict[str, Any]] | None = None,
    env: list[str] | None = None,
    **spec: Any,
) -> Promise:
    described = {
        "schema": 1,
        "name": "x",
        "base": {"image": "nvidia/cuda", "tag": "t"},
        "python": "3.11",
        **spec,
    }
    lock = {
        "base": {
            "kind": "image",
            "image": "debian",
            "tag": "12",
            "index-digest": DIGEST,
            "platform-digest": DIGEST,
            "config-digest": DIGEST,
            "diff-ids": [DIGEST],
            "config": {"config": {"Env": env or []}},
            "created": "2026-11-30T00:00:00Z",
        },
        "os": {"id": "debian", "version-id": "12", "glibc": "2.36"},
        "python": {"version": "3.11.2", "executable": "/usr/bin/python3.11", "tag": "cp311"},
        "wheels": wheels or [],
        "created": "2026-11-30T00:00:00Z",
    }
    return promise_of_lock(
        StackSpec.model_validate(described), PlatformLock.model_validate(lock), "linux/amd64", folder
    )


def test_what_the_spec_declares_for_verification_becomes_gates(tmp_path: Path) -> None:
    promise = cpu_promise(
        onnx_model=str(tmp_path / "model.onnx"),
        torch_model=PromisedFile(name="ours.py", path=str(tmp_path / "ours.py"), sha256="0"),
        torch_model_function="build",
        batch=4,
        checks=(PromisedFile(name="checks/own.py", path=str(tmp_path / "own.py"), sha256="0"),),
        tensorrt=True,
    )
    gates = {gate.name: gate for gate in plan_gates(promise, NONE)}
    assert gates["torch-model"].options["exchange"] is True
    assert gates["torch-memory"].options["batch"] == 4
    assert gates["models-agree"].needs == ("ort-import", "torch-model")
    assert gates["models-agree"].worker == "onnxruntime", "ORT never meets torch"
    assert gates["ort-tensorrt"].options["providers"][0] == "TensorrtExecutionProvider"
    assert gates["check-0"].options["file"].endswith("/check_0.py")


def test_a_file_that_changed_since_the_promise_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "ours.py"
    source.write_text("changed")
    promise = cpu_promise(torch_model=PromisedFile(name="ours.py", path=str(source), sha256="0" * 64))
    with pytest.raises(LockError) as refused:
        stack_files(promise)
    assert refused.value.code == "verify-file-changed"
