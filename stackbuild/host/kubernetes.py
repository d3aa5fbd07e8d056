"""``kubectl get nodes -o json``: nodes with the labels of NVIDIA's GPU feature discovery.

Source: NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery, "Generated Labels". ``cuda.runtime`` there is
what cuDriverGetVersion answers: the driver's CUDA maximum, not a runtime that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stackbuild.facts.tables import Facts
from stackbuild.host.driver_facts import cuda_version, driver_version, settled_max_cuda
from stackbuild.host.gpu_names import named_gpu, without_mig_profile
from stackbuild.host.model import Host, HostGpu, Posture

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_MIG_COUNT = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb\S{0,20}\.count")
_MOST_GPUS = 1024


def is_kubernetes(document: Any) -> bool:
    """True for a node of Kubernetes, or a list that holds some."""
    if not isinstance(document, Mapping):
        return False
    kind = document.get("kind")
    return kind in ("Node", "NodeList") or (kind == "List" and isinstance(document.get("items"), list))


def read_kubernetes(document: Mapping[str, Any], facts: Facts) -> list[Host]:
    """Read nodes; what is no node is passed over.

    Args:
        document: The document as ``kubectl`` prints it, parsed.
        facts: The fact tables.
    """
    items = document.get("items") if document.get("kind") != "Node" else [document]
    nodes = [item for item in items or () if isinstance(item, Mapping)]
    return [_host(node, facts) for node in nodes if node.get("kind", "Node") == "Node"]


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _host(node: Mapping[str, Any], facts: Facts) -> Host:
    metadata, status = _mapping(node, "metadata"), _mapping(node, "status")
    labels = {str(key): str(value) for key, value in _mapping(metadata, "labels").items()}
    about = {key: str(value) for key, value in _mapping(status, "nodeInfo").items()}
    notes: list[str] = []
    driver = driver_version(_driver(labels))
    reported = cuda_version(
        labels.get("nvidia.com/cuda.runtime-version.full")
        or _joined(labels, "nvidia.com/cuda.runtime-version", "major", "minor")
        or _joined(labels, "nvidia.com/cuda.runtime", "major", "minor")
    )
    settled = settled_max_cuda(driver, reported, facts)
    notes += [settled.note] if settled.note else []
    gpus = _gpus(labels, _mapping(status, "capacity"), notes, facts)
    amd = not gpus and any(key.startswith("amd.com/gpu") for key in (*labels, *_mapping(status, "capacity")))
    posture: Posture = "amd" if amd else "windows" if about.get("operatingSystem") == "windows" else "linux"
    return Host(
        name=str(metadata.get("name") or "node"),
        posture=posture,
        os=about.get("osImage"),
        kernel=about.get("kernelVersion"),
        machine=_MACHINES.get(about.get("architecture", "")),
        driver=driver,
        driver_source="node labels" if driver else None,
        max_cuda=settled.max_cuda,
        max_cuda_source="node labels" if settled.max_cuda else None,
        gpus=gpus,
        notes=tuple(notes),
    )


def _joined(labels: Mapping[str, str], prefix: str, *parts: str) -> str | None:
    values = [labels.get(f"{prefix}.{part}", "") for part in parts]
    return ".".join(value for value in values if value) if values[0] else None


def _driver(labels: Mapping[str, str]) -> str | None:
    return (
        labels.get("nvidia.com/cuda.driver-version.full")
        or _joined(labels, "nvidia.com/cuda.driver-version", "major", "minor", "revision")
        or _joined(labels, "nvidia.com/cuda.driver", "major", "minor", "rev")
    )


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str | int) and re.fullmatch(r"\d{1,9}", str(text)) else None


def _gpus(
    labels: Mapping[str, str], capacity: Mapping[str, Any], notes: list[str], facts: Facts
) -> tuple[HostGpu, ...]:
    product = labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
    if not product:
        offered = _number(capacity.get("nvidia.com/gpu"))
        if offered:
            notes.append(
                f"the node offers {offered} GPUs and has no label nvidia.com/gpu.product: GPU feature "
                "discovery does not run there"
            )
        return ()
    name, profile = without_mig_profile(product)
    if profile:
        notes.append(f"GPUs are divided into MIG devices {profile}; count and memory are of these")
    known = named_gpu(name, facts)
    notes += [known.note] if known.note else []
    capability = _joined(labels, "nvidia.com/gpu.compute", "major", "minor") or ""
    sliced = any(_MIG_COUNT.fullmatch(key) and _number(value) for key, value in labels.items())
    gpu = HostGpu(
        name=known.name,
        compute_capability=capability
        if re.fullmatch(r"[0-9]{1,2}\.[0-9]", capability)
        else known.compute_capability,
        memory_mib=_number(labels.get("nvidia.com/gpu.memory")),
        brand=known.brand,
        mig=True if profile or sliced else None,
    )
    count = _number(labels.get("nvidia.com/gpu.count"))
    return (gpu,) * min(1 if count is None else count, _MOST_GPUS)
