"""The devices in the container against those that were reserved, and MIG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stackbuild.findings import Finding, Verdict
from stackbuild.host.model import Host, HostGpu
from stackbuild.sizes import size_text
from stackbuild.verification.gpus import ALL, GpuSelection
from stackbuild.verification.judge.findings import finding, not_applicable, pointless
from stackbuild.verification.model import GateResult
from stackbuild.verification.surroundings import Surroundings

# The card has the memory that the driver reports; CUDA's total leaves out what the driver keeps for itself.
_MEMORY_TOLERANCE = 0.05


def judge_devices(results: Mapping[str, GateResult], surroundings: Surroundings) -> tuple[Finding, ...]:
    """Gates ``devices-as-reserved`` and ``mig-no-instance``."""
    driver, nvml = results.get("cuda-driver"), results.get("nvml")
    listed: Sequence[Mapping[str, Any]] = nvml.measured.get("devices", ()) if nvml else ()
    mig = judge_mig(listed)
    if driver is None or driver.measured.get("init") != 0:
        return (pointless("devices-as-reserved", "not judged: CUDA shows no device"), mig)
    return (judge_reserved(driver.measured["devices"], surroundings.gpus, surroundings.card), mig)


def judge_reserved(devices: Sequence[Mapping[str, Any]], gpus: GpuSelection, card: Host | None) -> Finding:
    """Gate ``devices-as-reserved``: number, identity, and, where the host is inventoried, the products."""
    code = "devices-as-reserved"
    wrong: list[str] = []
    expected = len(gpus.device_ids) or gpus.count
    if expected == ALL:
        expected = len(card.gpus) if card is not None and card.gpus and not _sliced(card) else 0
    if expected and len(devices) != expected:
        wrong.append(f"{expected} GPUs were reserved, CUDA shows {len(devices)}")
    named = {identity.split("-", 1)[1] for identity in gpus.device_ids if identity[:4] in ("GPU-", "MIG-")}
    shown = {device.get("uuid") for device in devices}
    missing = sorted(named - shown)
    if missing:
        wrong.append(f"{', '.join(missing)} was reserved and is not shown")
    if card is not None and card.gpus and not _sliced(card):
        wrong += [text for device in devices for text in _unlike(device, card.gpus)]
    described = ", ".join(
        f"{device.get('name', '?')} ({device.get('compute_capability', '?')}, "
        f"{size_text(device.get('memory_bytes') or 0)})"
        for device in devices
    )
    return finding(
        code,
        Verdict.ERROR if wrong else Verdict.PASS,
        "; ".join(wrong) or f"{len(devices)} of {gpus} reserved: {described}",
        measured=described or "no device",
        required=f"{expected or 'all'} GPUs" if wrong else "",
        details={"devices": list(devices), "reserved": str(gpus)},
    )


def judge_mig(listed: Sequence[Mapping[str, Any]]) -> Finding:
    """Gate ``mig-no-instance``: a GPU in MIG mode needs an instance before CUDA can use it."""
    code = "mig-no-instance"
    enabled = [device for device in listed if device.get("mig")]
    if not enabled:
        return not_applicable(code, "no GPU is in MIG mode")
    empty = [device.get("name") or "?" for device in enabled if not device.get("mig_devices")]
    if empty:
        return finding(
            code,
            Verdict.ERROR,
            f"{', '.join(empty)} is in MIG mode and has no instance that this container may use",
            measured="0 MIG devices",
            details={"devices": list(enabled)},
        )
    count = sum(len(device["mig_devices"]) for device in enabled)
    return finding(code, Verdict.PASS, f"{count} MIG devices", measured=f"{count} MIG devices")


def _sliced(card: Host) -> bool:
    return any(gpu.mig for gpu in card.gpus)


def _unlike(device: Mapping[str, Any], gpus: Sequence[HostGpu]) -> list[str]:
    """What of a device differs from the card's GPU of the same identity or, failing that, name."""
    uuid = device.get("uuid")
    same = next((gpu for gpu in gpus if gpu.uuid and uuid and gpu.uuid.endswith(uuid)), None)
    same = same or next((gpu for gpu in gpus if gpu.name == device.get("name")), None)
    if same is None:
        return [f"{device.get('name')} is no GPU of this host's card"]
    wrong = []
    if same.name != device.get("name"):
        wrong.append(f"CUDA calls it {device.get('name')}, the host's card {same.name}")
    if same.compute_capability and same.compute_capability != device.get("compute_capability"):
        wrong.append(
            f"{same.name} has compute capability {device.get('compute_capability')}, the host's card says "
            f"{same.compute_capability}"
        )
    memory, said = device.get("memory_bytes") or 0, (same.memory_mib or 0) << 20
    if said and abs(memory - said) > _MEMORY_TOLERANCE * said:
        wrong.append(f"{same.name} has {size_text(memory)}, the host's card says {size_text(said)}")
    return wrong
