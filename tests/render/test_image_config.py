from __future__ import annotations

import json
from typing import Any

import pytest

from stackbuild.errors import SpecError
from stackbuild.lock.model import PlatformLock
from stackbuild.render.image_config import ConfigLayer, image_config, nanoseconds
from stackbuild.render.library_path import library_folders
from stackbuild.spec.model import StackSpec
from tests.render.stacks import (
    CREATED,
    bootstrap_stack,
    cuda_base,
    digest,
    gpu_stack,
    plain_stack,
    platform_lock,
    spec,
    wheel,
)

LAYERS = (ConfigLayer(digest("1"), "FROM base"), ConfigLayer(digest("2"), "stackbuild: torch"))


def configuration(stack: StackSpec, lock: PlatformLock, **labels: str) -> dict[str, Any]:
    text = image_config(stack, lock, platform="linux/amd64", layers=LAYERS, labels=labels, created=CREATED)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_image_block_is_what_containers_get() -> None:
    found = configuration(*gpu_stack(), team="platform")
    config = found["config"]
    assert config["Cmd"] == ["python", "serve.py", "--price=$5"]
    assert "Entrypoint" not in config
    assert config["User"] == "1001"
    assert config["WorkingDir"] == "/srv/app"
    assert config["ExposedPorts"] == {"8080/tcp": {}}
    assert config["Volumes"] == {"/cache": {}}
    assert config["StopSignal"] == "SIGINT"
    assert config["Healthcheck"] == {
        "Test": ["CMD", "curl", "-f", "http://127.0.0.1:8080/"],
        "Interval": 30_000_000_000,
        "Retries": 3,
    }
    assert config["Labels"] == {"maintainer": "NVIDIA CORPORATION", "team": "platform"}
    assert found["created"] == CREATED
    assert found["rootfs"] == {"type": "layers", "diff_ids": [digest("1"), digest("2")]}
    assert [row["created_by"] for row in found["history"]] == ["FROM base", "stackbuild: torch"]
    assert (found["os"], found["architecture"]) == ("linux", "amd64")


def test_the_environment_puts_python_and_cuda_libraries_first() -> None:
    environment = dict(entry.split("=", 1) for entry in configuration(*gpu_stack())["config"]["Env"])
    assert environment["PATH"].startswith("/opt/venv/bin:/usr/local/nvidia/bin:")
    assert environment["LD_LIBRARY_PATH"].endswith(
        "/nvidia/cudnn/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
    )
    assert environment["CUDA_VERSION"] == "13.0.3"
    assert environment["HF_HOME"] == "/cache"


def test_the_bases_entrypoint_is_reset_unless_kept() -> None:
    stack, lock = plain_stack()
    assert configuration(stack, lock)["config"]["Entrypoint"] == ["/opt/nvidia/nvidia_entrypoint.sh"]
    reset = spec("x")
    assert "Entrypoint" not in configuration(reset, lock)["config"]
    assert configuration(reset, lock)["config"]["Cmd"] == ["/bin/bash"]


def test_an_entrypoint_of_ones_own_does_not_get_the_bases_arguments() -> None:
    config = configuration(spec("x", image={"entrypoint": ["/init"]}), platform_lock(cuda_base()))["config"]
    assert config["Entrypoint"] == ["/init"]
    assert "Cmd" not in config


def test_a_bootstrapped_base_starts_a_shell_with_the_usual_path() -> None:
    config = configuration(*bootstrap_stack())["config"]
    assert config["Env"] == [
        "PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    ]
    assert config["Cmd"] == ["/bin/bash"]


def test_same_inputs_same_bytes() -> None:
    stack, lock = gpu_stack()
    first = image_config(
        stack, lock, platform="linux/amd64", layers=LAYERS, labels={"b": "1", "a": "2"}, created=CREATED
    )
    second = image_config(
        stack, lock, platform="linux/amd64", layers=LAYERS, labels={"a": "2", "b": "1"}, created=CREATED
    )
    assert first == second


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30s", 30 * 10**9), ("1m30s", 90 * 10**9), ("1.5h", 5400 * 10**9), ("250ms", 250 * 10**6)],
)
def test_durations(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize("text", ["30", "s", "1 m", "", "5 minutes"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        nanoseconds(text)


def test_cuda_12_wheels_have_a_folder_each() -> None:
    wheels = [
        wheel("onnxruntime-gpu", "1.20.0", "framework", "1"),
        wheel("nvidia-cublas-cu12", "12.4.5.8", "cuda", "2"),
        wheel("nvidia-cuda-runtime-cu12", "12.4.127", "cuda", "3"),
        wheel("numpy", "2.0", "other", "4"),
    ]
    assert library_folders(wheels, "opt/venv/lib/python3.11/site-packages") == (
        "/opt/venv/lib/python3.11/site-packages/nvidia/cublas/lib",
        "/opt/venv/lib/python3.11/site-packages/nvidia/cuda_runtime/lib",
    )
    assert library_folders(wheels[1:], "x") == (), "torch finds its own by RUNPATH"
