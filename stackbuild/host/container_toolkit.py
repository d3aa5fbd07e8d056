"""The NVIDIA Container Toolkit: its version, and how it brings devices into a container.

Sources: NVIDIA/nvidia-container-toolkit, ``internal/info/auto.go`` (mode ``auto``: csv on Tegra, jit-cdi from
1.18, legacy before) and ``internal/config``; the hook that serves ``docker run --gpus`` stays legacy.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from stackbuild.engine.models import EngineInfo
from stackbuild.host.model import InjectionMode
from stackbuild.host.probe import Probe

_CONFIG = "/etc/nvidia-container-runtime/config.toml"
_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
_FIRST_JIT_CDI = (1, 18)
_VERSION = re.compile(r"version:? v?(\d+\.\d+\.\d+\S{0,20})")
_MODES: dict[str, InjectionMode] = {"legacy": "legacy", "cdi": "cdi", "jit-cdi": "jit-cdi", "csv": "csv"}


@dataclass(frozen=True, slots=True)
class ContainerToolkit:
    """What was found."""

    version: str | None
    injection: InjectionMode
    notes: tuple[str, ...] = ()


def find_toolkit(probe: Probe, engine: EngineInfo | None) -> ContainerToolkit:
    """Find the toolkit and the mode that containers of this engine get.

    Args:
        probe: Where to ask.
        engine: The engine of this machine; None when none answers.
    """
    notes: list[str] = []
    version = _version(probe, notes)
    config = probe.read(_CONFIG)
    specs = _cdi_specs(probe)
    if version is None and config is None:
        if specs:
            usable = engine is None or engine.cdi
            if not usable:
                notes.append("there is a CDI specification, and the engine has CDI off (features.cdi)")
            return ContainerToolkit(None, "cdi" if usable else "none", tuple(notes))
        return ContainerToolkit(None, "none", tuple(notes))
    mode = _configured_mode(config or "", notes)
    if mode == "auto":
        return ContainerToolkit(version, _auto(probe, version, engine, notes), tuple(notes))
    if mode == "cdi" and not specs:
        notes.append(
            "mode cdi, and no specification in /etc/cdi or /var/run/cdi: run nvidia-ctk cdi generate"
        )
    return ContainerToolkit(version, _MODES[mode], tuple(notes))


def _version(probe: Probe, notes: list[str]) -> str | None:
    for tool in ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-cli"):
        answer = probe.run(tool, "--version")
        if answer is None:
            continue
        match = _VERSION.search(answer.output)
        if match:
            return match[1]
        notes.append(f"{tool} {answer.problem or 'does not say its version'}")
    return None


def _configured_mode(config: str, notes: list[str]) -> str:
    try:
        section = tomllib.loads(config).get("nvidia-container-runtime", {})
    except tomllib.TOMLDecodeError as error:
        notes.append(f"{_CONFIG} is not TOML: {error}")
        return "auto"
    mode = section.get("mode", "auto") if isinstance(section, dict) else "auto"
    if mode == "auto" or mode in _MODES:
        return str(mode)
    notes.append(f"{_CONFIG} sets a mode that is not known: {mode!r}")
    return "auto"


def _auto(probe: Probe, version: str | None, engine: EngineInfo | None, notes: list[str]) -> InjectionMode:
    if probe.exists("/etc/nv_tegra_release"):
        return "csv"
    if version is None:
        notes.append("the toolkit does not say its version; its older mode, legacy, is assumed")
        return "legacy"
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < _FIRST_JIT_CDI:
        return "legacy"
    if engine is not None and "nvidia" not in engine.runtimes:
        notes.append(
            "the engine has no runtime 'nvidia', so containers get GPUs through the hook, in mode legacy; "
            "'nvidia-ctk runtime configure --runtime=docker' and a restart bring jit-cdi"
        )
        return "legacy"
    return "jit-cdi"


def _cdi_specs(probe: Probe) -> bool:
    return any(
        "nvidia.com/gpu" in (probe.read(f"{folder}/{name}") or "")
        for folder in _CDI_FOLDERS
        for name in probe.names(folder)
        if name.endswith((".yaml", ".yml", ".json"))
    )
