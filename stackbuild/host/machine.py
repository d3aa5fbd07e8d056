"""The machine under the driver: system, kernel, C library, firmware, CPU, compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackbuild.host.model import Posture
from stackbuild.host.probe import Platform, Probe

_DMI = "/sys/class/dmi/id/"
_FILLER = re.compile(
    r"to be filled by o\.?e\.?m\.?|default string|none|not specified|system product name", re.I
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What it is."""

    posture: Posture
    os: str | None
    kernel: str | None
    glibc: str | None
    firmware: str | None
    cpu: str | None
    notes: tuple[str, ...] = ()


def describe_machine(probe: Probe, known: Platform) -> Machine:
    """Describe the machine.

    Args:
        probe: Where to ask.
        known: What Python knows of it.
    """
    if known.system == "Darwin":
        chip = probe.run("sysctl", "-n", "machdep.cpu.brand_string")
        cpu = chip.output.strip() if chip is not None and not chip.problem else known.processor
        note = "macOS has no CUDA: containers run on the CPU; MPS and MLX work outside of containers"
        return Machine("macos", f"macOS {known.version}", known.release, None, None, cpu or None, (note,))
    if known.system == "Windows":
        note = "Linux containers get a GPU on Windows through WSL2: run 'stackbuild host' inside it as well"
        return Machine(
            "windows",
            f"Windows {known.release} ({known.version})",
            None,
            None,
            None,
            known.processor or None,
            (note,),
        )
    posture, notes = _linux_posture(probe)
    release = _os_release(probe.read("/etc/os-release") or "")
    return Machine(
        posture,
        release or known.system or None,
        known.release or None,
        known.libc.removeprefix("glibc ") if known.libc.startswith("glibc ") else None,
        _firmware(probe),
        _cpu(probe, known),
        tuple(notes),
    )


def _linux_posture(probe: Probe) -> tuple[Posture, list[str]]:
    notes = []
    if probe.exists("/.dockerenv") or probe.exists("/run/.containerenv"):
        notes.append("this is the view from inside a container; the host itself may have more")
    if "microsoft" not in (probe.read("/proc/version") or "").lower():
        return "linux", notes
    if not probe.exists("/dev/dxg"):
        notes.append("WSL without /dev/dxg: this is WSL1, or its GPU support is off (wsl --update)")
    elif not probe.exists("/usr/lib/wsl/lib/libcuda.so.1"):
        notes.append("WSL2 without /usr/lib/wsl/lib/libcuda.so.1: install the NVIDIA driver on Windows")
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64"):
        if probe.exists(f"{folder}/libcuda.so.1"):
            notes.append(
                f"{folder}/libcuda.so.1 is a Linux driver inside WSL2 and hides the one of Windows: remove it"
            )
    return "wsl2", notes


def _os_release(text: str) -> str | None:
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    name = values.get("PRETTY_NAME") or values.get("NAME") or ""
    return name.strip().strip("\"'") or None


def _firmware(probe: Probe) -> str | None:
    def dmi(name: str) -> str:
        value = " ".join((probe.read(_DMI + name) or "").split())
        return "" if _FILLER.fullmatch(value) else value

    board = " ".join(part for part in (dmi("sys_vendor"), dmi("product_name")) if part)
    version, day = dmi("bios_version"), dmi("bios_date")
    bios = " ".join(part for part in (version, f"({day})" if day else "") if part)
    if board or bios:
        return ", ".join(part for part in (board, f"firmware {bios}" if bios else "") if part)
    # Boards with a device tree, such as Jetson, have no DMI.
    return (probe.read("/proc/device-tree/model") or "").strip("\0 \n") or None


def _cpu(probe: Probe, known: Platform) -> str | None:
    text = probe.read("/proc/cpuinfo") or ""
    match = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    count = f"{known.processors} CPUs" if known.processors > 1 else "1 CPU" if known.processors else ""
    return ", ".join(part for part in (" ".join(match[1].split()) if match else "", count) if part) or None
