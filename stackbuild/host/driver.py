"""The NVIDIA driver of this machine: NVML, then /proc/driver/nvidia/version, then nvidia-smi."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from stackbuild.facts.tables import Facts
from stackbuild.host.driver_facts import cuda_version, driver_branch, driver_version, settled_max_cuda
from stackbuild.host.gpu_names import named_gpu
from stackbuild.host.model import HostGpu
from stackbuild.host.probe import Probe
from stackbuild.host.smi_table import is_smi_table, read_smi_table

_PROC = "/proc/driver/nvidia"
_NVRM = re.compile(r"NVRM version:.*?Kernel Module(?: for \S+)?\s+([0-9][0-9.]*)")
_SMI = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")
_NVIDIA_ON_PCI = "0x10de"


@dataclass(frozen=True, slots=True)
class Driver:
    """What was found out, and from where."""

    version: str | None = None
    version_source: str | None = None
    max_cuda: str | None = None
    max_cuda_source: str | None = None
    flavor: Literal["open", "proprietary"] | None = None
    gpus: tuple[HostGpu, ...] = ()
    notes: tuple[str, ...] = ()


def find_driver(probe: Probe, facts: Facts) -> Driver:
    """Find the driver, its CUDA maximum and its GPUs; the first source that answers counts.

    Args:
        probe: Where to ask.
        facts: The fact tables, for what a driver's branch reports.
    """
    nvml = probe.nvml()
    module = probe.read(f"{_PROC}/version") or ""
    notes = [nvml.problem] if nvml.problem and not nvml.absent else []
    flavor: Literal["open", "proprietary"] | None = None
    if _NVRM.search(module):
        flavor = "open" if "Open Kernel Module" in module else "proprietary"
    version = driver_version(nvml.driver)
    if version is not None:
        return _settled(version, "nvml", cuda_version(nvml.cuda), "nvml", flavor, nvml.gpus, notes, facts)
    loaded = _NVRM.search(module)
    version = driver_version(loaded[1]) if loaded else None
    if version is not None:
        row = driver_branch(version, facts)
        level = row.max_cuda if row else None
        if level is not None:
            source = f"proc, and what R{row.branch} has in the facts" if row else "proc"
            gpus = _gpus_of_proc(probe, facts)
            return _settled(version, "proc", level, source, flavor, gpus, notes, facts)
    return _from_smi(probe, version, flavor, notes, facts)


def _from_smi(
    probe: Probe,
    version: str | None,
    flavor: Literal["open", "proprietary"] | None,
    notes: list[str],
    facts: Facts,
) -> Driver:
    answer = next((found for tool in _SMI if (found := probe.run(tool)) is not None), None)
    if answer is not None and is_smi_table(answer.output):
        host = read_smi_table(answer.output, "", facts)[0]
        return _settled(
            version or host.driver,
            "proc" if version else "nvidia-smi",
            host.max_cuda,
            "nvidia-smi",
            flavor,
            host.gpus,
            [*notes, *host.notes],
            facts,
        )
    if answer is not None:
        said = next((line.strip() for line in answer.output.splitlines() if line.strip()), "nothing")
        notes.append(f"nvidia-smi {answer.problem or 'prints no table'}: {said[:200]}")
    if version is not None:
        return _settled(version, "proc", None, None, flavor, _gpus_of_proc(probe, facts), notes, facts)
    devices = _on_pci(probe)
    if devices:
        notes.append(f"{devices} NVIDIA GPU{'s' * (devices > 1)} on the PCI bus, and no driver: install one")
    return Driver(notes=tuple(notes))


def _settled(
    version: str | None,
    source: str,
    level: str | None,
    level_source: str | None,
    flavor: Literal["open", "proprietary"] | None,
    gpus: tuple[HostGpu, ...],
    notes: list[str],
    facts: Facts,
) -> Driver:
    settled = settled_max_cuda(version, level, facts)
    return Driver(
        version,
        source if version else None,
        settled.max_cuda,
        ("facts" if settled.note else level_source) if settled.max_cuda else None,
        flavor,
        gpus,
        tuple(dict.fromkeys([*notes, *([settled.note] if settled.note else [])])),
    )


def _gpus_of_proc(probe: Probe, facts: Facts) -> tuple[HostGpu, ...]:
    gpus = []
    for address in probe.names(f"{_PROC}/gpus"):
        text = probe.read(f"{_PROC}/gpus/{address}/information") or ""
        model = re.search(r"^Model:\s*(\S.*)$", text, re.MULTILINE)
        uuid = re.search(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)$", text, re.MULTILINE)
        if model:
            known = named_gpu(model[1], facts)
            gpus.append(
                HostGpu(
                    name=known.name,
                    compute_capability=known.compute_capability,
                    brand=known.brand,
                    uuid=uuid[1] if uuid else None,
                )
            )
    return tuple(gpus)


def _on_pci(probe: Probe) -> int:
    """How many NVIDIA display controllers (PCI class 03) there are."""
    folder = "/sys/bus/pci/devices"
    return sum(
        (probe.read(f"{folder}/{address}/vendor") or "").strip() == _NVIDIA_ON_PCI
        and (probe.read(f"{folder}/{address}/class") or "").startswith("0x03")
        for address in probe.names(folder)
    )
