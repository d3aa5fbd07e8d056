"""How GPUs reach a container: the engine's own request and its hook, the nvidia runtime, or CDI.

Sources: Docker Engine API 1.41 (DeviceRequest) and 1.44 (driver ``cdi``); NVIDIA Container Toolkit
documentation, "Specialized configurations" (NVIDIA_VISIBLE_DEVICES, NVIDIA_DRIVER_CAPABILITIES) and
"Container Device Interface".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from stackbuild.engine.models import DeviceRequest, EngineInfo
from stackbuild.host.model import Host
from stackbuild.verification.gpus import ALL, GpuSelection, device_requests

Mode = Literal["hook", "runtime", "cdi"]
MODES: tuple[Mode, ...] = get_args(Mode)
NVIDIA_RUNTIME = "nvidia"
_CDI_KIND = "nvidia.com/gpu"


@dataclass(frozen=True)
class Injected:
    """What a container is created with to get its GPUs."""

    device_requests: tuple[DeviceRequest, ...] = ()
    runtime: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def candidate_modes(engine: EngineInfo, card: Host | None) -> tuple[Mode, ...]:
    """The modes to try for ``auto``, most likely first; those the engine cannot do are left out.

    Args:
        engine: The engine.
        card: The host's inventory, where there is one.
    """
    preferred: Mode = "hook"
    if card is not None and card.injection == "cdi":
        preferred = "cdi"
    elif card is not None and card.injection == "csv":
        preferred = "runtime"  # Jetson: the hook mounts nothing there
    order = sorted(MODES, key=lambda mode: mode != preferred)
    return tuple(mode for mode in order if not unavailable(mode, engine))


def unavailable(mode: Mode, engine: EngineInfo) -> str:
    """Why the engine cannot inject in this way, as far as it says so itself; empty when it may.

    Whether it has a driver for the hook is said only by an engine that is asked to start a container.
    """
    if mode == "runtime" and NVIDIA_RUNTIME not in engine.runtimes:
        return f"the engine has no runtime {NVIDIA_RUNTIME}"
    if mode == "cdi" and not engine.cdi:
        return "the engine has no CDI, or it is turned off (features.cdi, Docker 25 or newer)"
    return ""


def injected(mode: Mode, gpus: GpuSelection) -> Injected:
    """How a container gets these GPUs in this way."""
    if gpus.none:
        return Injected()
    if mode == "hook":
        return Injected(device_requests=device_requests(gpus))
    if mode == "cdi":
        names = tuple(f"{_CDI_KIND}={name}" for name in _names(gpus))
        return Injected(device_requests=(DeviceRequest(driver="cdi", device_ids=names),))
    return Injected(
        runtime=NVIDIA_RUNTIME,
        environment={
            "NVIDIA_VISIBLE_DEVICES": ",".join(_names(gpus)),
            "NVIDIA_DRIVER_CAPABILITIES": ",".join(gpus.capabilities),
        },
    )


def _names(gpus: GpuSelection) -> tuple[str, ...]:
    if gpus.device_ids:
        return gpus.device_ids
    return ("all",) if gpus.count == ALL else tuple(str(index) for index in range(gpus.count))
