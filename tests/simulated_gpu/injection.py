"""What gets injected into a container of a simulated host: one answer for the hook and for CDI."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.simulated_gpu.compile import libcuda, libcuda_stub, libnvidia_ml
from tests.simulated_gpu.host import SimulatedHost

# 195 is NVIDIA's (Documentation/admin-guide/devices.txt); those of uvm and caps are given out dynamically,
# these two as often seen.
_NVIDIA, _UVM, _CAPS = 195, 510, 508


@dataclass(frozen=True)
class Node:
    """A character device."""

    path: str
    major: int
    minor: int
    mode: int


@dataclass(frozen=True)
class Library:
    """A library of the driver: a file of this machine, its name in the container, what brings it."""

    source: str
    name: str
    capability: str


@dataclass(frozen=True)
class InjectedGpu:
    """One GPU; ``mig`` maps a MIG device's UUID to its node."""

    index: int
    uuid: str
    compute_capability: str
    brand: str
    node: Node
    mig: dict[str, Node]


@dataclass(frozen=True)
class Injection:
    """All that a host injects; the hook reads it as JSON."""

    driver: str
    cuda: str
    host_file: str
    libraries: tuple[Library, ...]
    control: tuple[Node, ...]
    gpus: tuple[InjectedGpu, ...]
    failures: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """For ``json.dumps``."""
        return asdict(self)


def injection(host: SimulatedHost, host_file: Path) -> Injection:
    """What ``host`` injects; ``host_file`` is its file for the libraries."""
    mode = 0o600 if "unreadable-device-nodes" in host.failures else 0o666
    control = [Node("/dev/nvidiactl", _NVIDIA, 255, mode)]
    if "uvm-missing" not in host.failures:
        control.append(Node("/dev/nvidia-uvm", _UVM, 0, mode))
    cuda = libcuda_stub() if "stub-libcuda" in host.failures else libcuda()
    return Injection(
        driver=host.driver,
        cuda=host.cuda,
        host_file=os.fspath(host_file),
        libraries=(
            Library(os.fspath(cuda), f"libcuda.so.{host.driver}", "compute"),
            Library(os.fspath(libnvidia_ml()), f"libnvidia-ml.so.{host.driver}", "utility"),
        ),
        control=tuple(control),
        gpus=tuple(
            InjectedGpu(
                index=index,
                uuid=host.uuid(index),
                compute_capability=gpu.compute_capability,
                brand=gpu.brand,
                node=Node(f"/dev/nvidia{index}", _NVIDIA, index, mode),
                mig={host.mig_uuid(index, n): _mig_node(host, index, n) for n in range(len(gpu.mig or ()))},
            )
            for index, gpu in enumerate(host.gpus)
        ),
        failures=host.failures,
    )


def _mig_node(host: SimulatedHost, index: int, mig: int) -> Node:
    minor = host.mig_capability(index, mig)
    return Node(f"/dev/nvidia-caps/nvidia-cap{minor}", _CAPS, minor, 0o444)
