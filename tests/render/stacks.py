"""Stacks and locks that the golden files are rendered from; the same on every machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stackbuild.lock.model import (
    BaseLock,
    BootstrapBaseLock,
    ImageBaseLock,
    LockedDeb,
    LockedWheel,
    OsLock,
    PlatformLock,
    PythonLock,
    WheelGroup,
)
from stackbuild.spec.model import StackSpec

CREATED = "2026-11-01T00:00:00Z"


def digest(letter: str) -> str:
    return f"sha256:{letter * 64}"


def deb(name: str, version: str, architecture: str = "amd64") -> LockedDeb:
    return LockedDeb(
        name=name,
        version=version,
        architecture=architecture,
        repository="debian",
        path=f"pool/main/{name[0]}/{name}/{name}_{version}_{architecture}.deb",
        sha256="d" * 64,
        size=1000,
    )


def wheel(name: str, version: str, group: WheelGroup, letter: str, **more: Any) -> LockedWheel:
    more.setdefault("index", "default")
    return LockedWheel(
        name=name,
        version=version,
        file=f"{name.replace('-', '_')}-{version}-py3-none-any.whl",
        sha256=letter * 64,
        size=2000,
        group=group,
        **more,
    )


def cuda_base() -> ImageBaseLock:
    return ImageBaseLock(
        image="nvidia/cuda",
        tag="13.0.3-base-ubuntu24.04",
        index_digest=digest("a"),
        platform_digest=digest("b"),
        config_digest=digest("c"),
        diff_ids=(digest("1"), digest("2")),
        config={
            "os": "linux",
            "architecture": "amd64",
            "config": {
                "Env": [
                    "PATH=/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "CUDA_VERSION=13.0.3",
                    "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
                ],
                "Entrypoint": ["/opt/nvidia/nvidia_entrypoint.sh"],
                "Cmd": ["/bin/bash"],
                "Labels": {"maintainer": "NVIDIA CORPORATION"},
            },
        },
        created="2026-01-02T03:04:05Z",
    )


def bootstrap_base() -> BootstrapBaseLock:
    return BootstrapBaseLock(
        distribution="debian",
        suite="bookworm",
        debs=(deb("apt", "2.6.1"), deb("base-files", "12.4+deb12u12")),
        diff_id=digest("e"),
        created=CREATED,
    )


def platform_lock(base: BaseLock, **more: Any) -> PlatformLock:
    more.setdefault("os", OsLock(id="ubuntu", version_id="24.04", codename="noble", glibc="2.39"))
    return PlatformLock(base=base, created=CREATED, **more)


def spec(name: str, **parts: Any) -> StackSpec:
    data = {"schema": 1, "name": name, "base": {"image": "nvidia/cuda", "tag": "13.0.3-base-ubuntu24.04"}}
    return StackSpec.model_validate(data | {key.replace("_", "-"): value for key, value in parts.items()})


def gpu_stack() -> tuple[StackSpec, PlatformLock]:
    """Everything that a spec can ask of a Dockerfile, on an NVIDIA base."""
    stack = spec(
        "gpu-service",
        summary="PyTorch and ONNX Runtime on CUDA 13.0",
        python="3.12",
        frameworks={
            "torch": {"version": "2.14.1", "variant": "cu130"},
            "onnxruntime-gpu": {"version": "1.31.1"},
        },
        packages=["ourlib", "transformers"],
        indexes={"corp": {"url": "https://reader:secret@pypi.corp.example/simple", "packages": ["ourlib"]}},
        apt=["libgomp1"],
        apt_sources=[
            {"uri": "https://apt.corp.example/debian", "suite": "stable", "key-sha256": "9" * 64},
        ],
        files=[
            {"from": "app/", "to": "/srv/app", "owner": "app"},
            {"from": "settings file.ini", "to": "/etc/our app/settings.ini"},
        ],
        image={
            "env": {"HF_HOME": "/cache", "GREETING": 'say "hi" for $5 \\ each'},
            "workdir": "/srv/app",
            "cmd": ["python", "serve.py", "--price=$5"],
            "expose": ["8080"],
            "healthcheck": {
                "test": ["curl", "-f", "http://127.0.0.1:8080/"],
                "interval": "30s",
                "retries": 3,
            },
            "volumes": ["/cache"],
            "labels": {"team": "platform"},
            "user": {"name": "app", "uid": 1001},
            "stop-signal": "SIGINT",
        },
    )
    lock = platform_lock(
        cuda_base(),
        python=PythonLock(version="3.12.3", executable="/usr/bin/python3.12", tag="cp312"),
        debs=(
            deb("libgomp1", "14.2.0-4ubuntu2"),
            deb("python3.12", "3.12.3-1ubuntu0.8"),
            deb("tzdata", "2026a", "all"),
        ),
        wheels=(
            wheel("numpy", "2.4.6", "other", "3"),
            wheel("nvidia-cublas", "13.0.2", "cuda", "4", index="pytorch-cu130"),
            wheel("nvidia-cuda-runtime", "13.0.96", "cuda", "5", index="pytorch-cu130"),
            wheel("nvidia-cudnn-cu13", "9.13.0", "cuda", "6", index="pytorch-cu130"),
            wheel("onnxruntime-gpu", "1.31.1", "framework", "7", requested=True),
            wheel("ourlib", "1.0", "other", "8", index="corp", requested=True),
            wheel(
                "special",
                "2.0",
                "other",
                "f",
                index="url",
                url="https://me:token@wheels.example/special-2.0-py3-none-any.whl",
            ),
            wheel("torch", "2.14.1+cu130", "torch", "2", index="pytorch-cu130", requested=True),
        ),
    )
    return stack, lock


def bootstrap_stack() -> tuple[StackSpec, PlatformLock]:
    """The smallest stack with Python, on a bootstrapped base."""
    stack = spec(
        "demo",
        base={"bootstrap": "debian", "suite": "bookworm"},
        python="3.11",
        frameworks={"onnxruntime": {"version": "1.31.1"}},
    )
    lock = platform_lock(
        bootstrap_base(),
        os=OsLock(id="debian", version_id="12", codename="bookworm", glibc="2.36"),
        python=PythonLock(version="3.11.2", executable="/usr/bin/python3.11", tag="cp311"),
        debs=(deb("python3.11", "3.11.2-6+deb12u9"),),
        wheels=(wheel("onnxruntime", "1.31.1", "framework", "7", requested=True),),
    )
    return stack, lock


def plain_stack() -> tuple[StackSpec, PlatformLock]:
    """No Python, the base's entrypoint kept."""
    return spec("plain", image={"entrypoint": "keep"}), platform_lock(cuda_base())


def write_sources(folder: Path) -> None:
    """The files that gpu_stack copies."""
    (folder / "app").mkdir()
    (folder / "app" / "serve.py").write_text("print('serving')\n")
    (folder / "settings file.ini").write_text("[service]\n")
