"""A simulated nvidia-container-runtime-hook: what the NVIDIA Container Toolkit's legacy mode does.

dockerd offers the ``nvidia`` device driver when a program of that name is on its PATH as it starts, and runs it
as an OCI prestart hook: the state comes on stdin, the request in NVIDIA_* variables of the container.
Standard library only. Wording: nvidia-container-toolkit 1.17 and libnvidia-container 1.17.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

from tests.simulated_gpu.requirement import RequirementError, require

HOOK_NAME = "nvidia-container-runtime-hook"
HOST_VARIABLE = "SIMULATED_GPU_HOST"  # names the folder with the file below
INJECTION_FILE = "injection.json"
HOST_FILE = "/run/simulated-gpu/host.conf"
LIBRARIES = f"/usr/lib/{platform.machine()}-linux-gnu"  # where Debian and Ubuntu keep libraries
_CAPABILITIES = ("compat32", "compute", "display", "graphics", "ngx", "utility", "video")


def main(argv: list[str]) -> int:
    """Run one subcommand: ``prestart``, or ``update-ldcache`` as a CDI hook; others do nothing, as the real one."""
    if argv[1:2] == ["prestart"]:
        _prestart(json.load(sys.stdin))
    elif argv[1:2] == ["update-ldcache"]:
        _update_ldcache(_rootfs(json.load(sys.stdin))[0])
    return 0


def _refuse(message: str) -> NoReturn:
    sys.stderr.write(f"Auto-detected mode as 'legacy'\nnvidia-container-cli: {message}\n")
    raise SystemExit(1)


def _rootfs(state: dict[str, Any]) -> tuple[Path, dict[str, str]]:
    """The container's root file system, and its environment; of a repeated variable the last counts."""
    bundle = Path(state["bundle"])
    config = json.loads((bundle / "config.json").read_text())
    environment = dict(entry.partition("=")[::2] for entry in config["process"]["env"])
    return bundle / config["root"]["path"], environment


def _prestart(state: dict[str, Any]) -> None:
    root, environment = _rootfs(state)
    visible = environment.get("NVIDIA_VISIBLE_DEVICES", "void")
    if visible in ("", "void"):
        return
    capabilities = _capabilities(environment)
    file = Path(os.environ[HOST_VARIABLE]) / INJECTION_FILE
    host = json.loads(file.read_text()) if file.exists() else None
    if host is None or "no-driver" in host["failures"]:
        _refuse(
            "initialization error: load library failed: libnvidia-ml.so.1: "
            "cannot open shared object file: no such file or directory"
        )
    if "hook-nvml-mismatch" in host["failures"]:
        _refuse("initialization error: nvml error: driver/library version mismatch")
    gpus, mig = _select(host, visible)
    _check_requirements(host, gpus, environment)
    if "wrong-count" in host["failures"]:
        gpus = gpus[:-1]
    nodes = [*host["control"], *(gpu["node"] for gpu in gpus), *mig]
    libraries = [lib for lib in host["libraries"] if lib["capability"] in capabilities]
    _inject(state["pid"], root, host["host_file"], libraries, nodes)


def _capabilities(environment: dict[str, str]) -> list[str]:
    asked = environment.get("NVIDIA_DRIVER_CAPABILITIES") or "utility,compute"
    capabilities = [*_CAPABILITIES] if asked == "all" else asked.split(",")
    if not set(capabilities) <= set(_CAPABILITIES):
        _refuse(f"unsupported capabilities found in '{asked}' (allowed '{','.join(_CAPABILITIES)}')")
    return capabilities


def _select(host: dict[str, Any], visible: str) -> tuple[list[Any], list[Any]]:
    """The GPUs that are named, and the nodes of the MIG devices that are."""
    everything = [node for gpu in host["gpus"] for node in gpu["mig"].values()]
    if visible in ("all", "none"):
        return (host["gpus"], everything) if visible == "all" else ([], [])
    gpus: dict[int, Any] = {}
    mig: list[Any] = []
    for name in visible.split(","):
        gpu, nodes = _device(host, name)
        gpus[gpu["index"]] = gpu
        mig += nodes
    return [gpus[index] for index in sorted(gpus)], mig


def _device(host: dict[str, Any], name: str) -> tuple[Any, list[Any]]:
    for gpu in host["gpus"]:
        if name in (str(gpu["index"]), gpu["uuid"]):
            return gpu, list(gpu["mig"].values())
        for number, (uuid, node) in enumerate(gpu["mig"].items()):
            if name in (f"{gpu['index']}:{number}", uuid):
                return gpu, [node]
    _refuse(f"device error: {name}: unknown device")


def _check_requirements(host: dict[str, Any], gpus: list[Any], environment: dict[str, str]) -> None:
    if environment.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "t", "true"):
        return
    requirements = [
        value for name, value in sorted(environment.items()) if name.startswith("NVIDIA_REQUIRE_")
    ]
    # An image with CUDA_VERSION and without a requirement of its own is of the first generation.
    version = re.match(r"\d+\.\d+", environment.get("CUDA_VERSION", ""))
    if version and "NVIDIA_REQUIRE_CUDA" not in environment:
        requirements.append(f"cuda>={version[0]}")
    common = {"cuda": host["cuda"], "driver": host["driver"]}
    devices = [{"arch": gpu["compute_capability"], "brand": gpu["brand"]} for gpu in gpus] or [{}]
    try:
        for device in devices:
            require(requirements, {**common, **device})
    except RequirementError as error:
        _refuse(f"requirement error: {error}")


def _inject(pid: int, root: Path, host_file: str, libraries: list[Any], nodes: list[Any]) -> None:
    """Mount the libraries and make the device nodes, in the container's mount namespace before it starts."""
    debian = (root / "etc/debian_version").exists() or (root / LIBRARIES.lstrip("/")).is_dir()
    folder = LIBRARIES if debian else "/usr/lib64"
    mounts = [(host_file, HOST_FILE), *((lib["source"], f"{folder}/{lib['name']}") for lib in libraries)]
    lines = [
        "set -e",
        'bind() { mkdir -p "${2%/*}"; : >"$2"; mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"; }',
    ]
    lines += [f"bind '{source}' '{root}{target}'" for source, target in mounts]
    lines.append('node() { mkdir -p "${1%/*}"; rm -f "$1"; mknod -m "$2" "$1" c "$3" "$4"; }')
    lines += [
        f"node '{root}{node['path']}' {node['mode']:o} {node['major']} {node['minor']}" for node in nodes
    ]
    done = subprocess.run(
        ["nsenter", "--target", str(pid), "--mount", "/bin/sh", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        _refuse(f"mount error: {done.stderr.strip()}")
    _update_ldcache(root, "nsenter", "--target", str(pid), "--mount")


def _update_ldcache(root: Path, *prefix: str) -> None:
    """Let the container's loader find the libraries; this also makes the links named libcuda.so.1 and so on."""
    done = subprocess.run([*prefix, "/sbin/ldconfig", "-r", root], capture_output=True, text=True)
    if done.returncode:
        _refuse(f"ldcache error: process /sbin/ldconfig failed with error code: {done.returncode}")
