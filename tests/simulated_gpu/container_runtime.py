"""What is done to a container's OCI configuration before runc creates it.

A runtime named nvidia adds the hook, as nvidia-container-runtime does. Each runtime opens the device cgroup to
the nodes that the hook will make: the real hook does that itself, by a file on cgroup v1 and by rewriting a BPF
program on v2; runc does it on both. Standard library only: this runs at every start of a container.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.simulated_gpu.runtime_hook import HOOK_NAME, INJECTION_FILE


def prepare(argv: list[str], host: Path, hook: Path | None = None) -> None:
    """Change the configuration that ``argv``, the arguments of ``runc create``, names.

    Args:
        argv: As the engine calls an OCI runtime.
        host: The folder that describes the host.
        hook: The hook to add; None where the engine adds it when it is wanted.
    """
    file = Path(argv[argv.index("--bundle") + 1]) / "config.json"
    config = json.loads(file.read_text())
    hooks = config.setdefault("hooks", {}).setdefault("prestart", [])
    if hook is not None:
        environment = [f"{name}={value}" for name, value in os.environ.items()]
        hooks.append({"path": str(hook), "args": [HOOK_NAME, "prestart"], "env": environment})
    injection = host / INJECTION_FILE
    if any(entry["args"][0] == HOOK_NAME for entry in hooks) and injection.exists():
        _open_device_cgroup(config, json.loads(injection.read_text()))
    file.write_text(json.dumps(config))


def _open_device_cgroup(config: dict[str, Any], host: dict[str, Any]) -> None:
    if "no-cgroups" in host["failures"]:
        return
    mig = [node for gpu in host["gpus"] for node in gpu["mig"].values()]
    nodes = [*host["control"], *(gpu["node"] for gpu in host["gpus"]), *mig]
    rules = config["linux"].setdefault("resources", {}).setdefault("devices", [])
    rules += [
        {"allow": True, "type": "c", "major": node["major"], "minor": node["minor"], "access": "rw"}
        for node in nodes
    ]
