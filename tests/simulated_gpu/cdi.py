"""The CDI specification of a simulated host, as ``nvidia-ctk cdi generate`` writes one (CDI 0.5.0).

Device names are indexes, UUIDs and ``all``; MIG devices are named GPU:NUMBER.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.simulated_gpu.injection import InjectedGpu, Injection, Node
from tests.simulated_gpu.runtime_hook import HOST_FILE, LIBRARIES

KIND = "nvidia.com/gpu"


def cdi_specification(injection: Injection, hook: Path) -> dict[str, Any]:
    """The specification, for ``json.dumps``.

    Args:
        injection: What the host injects.
        hook: The program that CDI runs in the container's namespace to refresh its ld.so.cache.
    """
    everything = injection.gpus[:-1] if "wrong-count" in injection.failures else injection.gpus
    devices = {"all": [node for gpu in everything for node in _all_nodes(gpu)]}
    for gpu in injection.gpus:
        devices[str(gpu.index)] = devices[gpu.uuid] = _all_nodes(gpu)
        for number, (uuid, node) in enumerate(gpu.mig.items()):
            devices[f"{gpu.index}:{number}"] = devices[uuid] = [gpu.node, node]
    mounts = [(injection.host_file, HOST_FILE)]
    mounts += [(library.source, f"{LIBRARIES}/{library.name}") for library in injection.libraries]
    return {
        "cdiVersion": "0.5.0",
        "kind": KIND,
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [_device_node(node) for node in injection.control],
            "mounts": [
                {"hostPath": source, "containerPath": target, "options": ["ro", "nosuid", "nodev", "bind"]}
                for source, target in mounts
            ],
            "hooks": [
                {"hookName": "createContainer", "path": str(hook), "args": [hook.name, "update-ldcache"]}
            ],
        },
        "devices": [
            {"name": name, "containerEdits": {"deviceNodes": [_device_node(node) for node in nodes]}}
            for name, nodes in devices.items()
        ],
    }


def _all_nodes(gpu: InjectedGpu) -> list[Node]:
    return [gpu.node, *gpu.mig.values()]


def _device_node(node: Node) -> dict[str, Any]:
    described = asdict(node)
    return {"type": "c", "permissions": "rw", "fileMode": described.pop("mode"), **described}
