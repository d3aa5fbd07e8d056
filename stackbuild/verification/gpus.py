"""GPU selection: what ``--gpus`` says, and the one place that turns it into a device request.

Rules of the engine's API (Docker Engine API 1.41, DeviceRequest): a count or ids, never both; a count of -1
is all; capabilities are a list of lists, OR of ANDs. The engine accepts other shapes and fails late.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stackbuild.engine.models import DeviceRequest
from stackbuild.errors import UsageError
from stackbuild.verification.promise import Device

ALL = -1
# compute brings libcuda, utility brings NVML; with utility alone nvidia-smi works and CUDA does not.
CAPABILITIES = ("compute", "utility")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]*")


@dataclass(frozen=True)
class GpuSelection:
    """Which GPUs to reserve: ``count`` (-1 for all, 0 for none) or ``device_ids``, and with which capabilities."""

    count: int = 0
    device_ids: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = CAPABILITIES

    def __post_init__(self) -> None:
        if self.count and self.device_ids:
            raise _bad("a number of GPUs and their ids cannot both be given")
        if self.count < ALL:
            raise _bad(f"{self.count} is no number of GPUs")
        if len(set(self.device_ids)) != len(self.device_ids):
            raise _bad("a device is named twice")
        if not self.capabilities or not all(_DEVICE.fullmatch(entry) for entry in self.capabilities):
            raise _bad("capabilities are words such as compute and utility")

    @property
    def none(self) -> bool:
        """True when no GPU is asked for."""
        return self.count == 0 and not self.device_ids

    def __str__(self) -> str:
        if self.device_ids:
            chosen = "device=" + ",".join(self.device_ids)
        else:
            chosen = {ALL: "all", 0: "none"}.get(self.count, str(self.count))
        if self.none or self.capabilities == CAPABILITIES:
            return chosen
        return f"{chosen} with {','.join(self.capabilities)}"


def parse_gpus(text: str) -> GpuSelection:
    """Read ``all``, ``none``, a number, or ``device=ID[,ID…]``.

    Raises:
        UsageError: ``bad-device-request``.
    """
    if text == "all":
        return GpuSelection(count=ALL)
    if text == "none":
        return GpuSelection()
    if text.isascii() and text.isdigit():
        return GpuSelection(count=int(text))
    name, separator, ids = text.partition("=")
    devices = tuple(ids.split(","))
    if name != "device" or not separator or not all(_DEVICE.fullmatch(device) for device in devices):
        raise _bad(f"{text!r} is no GPU selection")
    return GpuSelection(device_ids=devices)


def default_gpus(device: Device) -> GpuSelection:
    """What is reserved when nobody says: all GPUs for a stack that promises one, none otherwise."""
    return GpuSelection(count=ALL) if device == "cuda" else GpuSelection()


def device_requests(
    selection: GpuSelection, capabilities: Sequence[Sequence[str]] | None = None
) -> tuple[DeviceRequest, ...]:
    """The engine's device requests for a selection; empty for none.

    Args:
        selection: What to reserve.
        capabilities: A list of lists, any one of which must be there as a whole; None for ``gpu`` and the
            selection's.

    Raises:
        UsageError: ``bad-device-request`` when ``capabilities`` is a flat list.
    """
    if selection.none:
        return ()
    asked = [("gpu", *selection.capabilities)] if capabilities is None else capabilities
    if isinstance(asked, str) or any(isinstance(entry, str) for entry in asked):
        raise _bad("capabilities are a list of lists, such as [[gpu, compute, utility]]")
    return (
        DeviceRequest(
            count=selection.count,
            device_ids=selection.device_ids,
            capabilities=tuple(tuple(entry) for entry in asked),
        ),
    )


def _bad(what: str) -> UsageError:
    return UsageError(
        f"The GPU selection is not valid: {what}.",
        code="bad-device-request",
        do="Use --gpus all, none, a number, or device=ID[,ID…].",
    )
