"""The run as a Compose file.

Source: Compose specification, "Deploy": ``reservations.devices``.
"""

from __future__ import annotations

import base64
import io
import zipfile
from typing import Any

from stackbuild.verification.elsewhere import ElsewhereRun, suite_arguments
from stackbuild.verification.emit.writing import each_string, head, too_large, yaml_text
from stackbuild.verification.files import SUITE_FOLDER
from stackbuild.verification.gpus import ALL

# Linux refuses a single variable of 128 KiB, and all of them with the arguments beyond some 2 MiB.
_VARIABLE_BYTES = 100_000
_ENVIRONMENT_BYTES = 1_000_000
_UNPACKED = "/run/stackbuild"
_VARIABLE = "STACKBUILD_SUITE"


def compose_file(run: ElsewhereRun) -> str:
    """A Compose file whose one service unpacks the suite from its environment, for any version of Compose."""
    packed = base64.b64encode(_packed(run)).decode()
    if len(packed) > _ENVIRONMENT_BYTES:
        raise too_large(run, "the environment of a container", "--emit sbatch takes more.")
    variables = {
        f"{_VARIABLE}_{number:02}": packed[start : start + _VARIABLE_BYTES]
        for number, start in enumerate(range(0, len(packed), _VARIABLE_BYTES))
    }
    service: dict[str, Any] = {
        "image": run.bound.runs,
        "entrypoint": _unpacking(run),
        "command": [],
        "network_mode": "none",
        "environment": variables,
        "tmpfs": [f"{_UNPACKED}:rw,mode=1777", *(["/tmp:rw,mode=1777"] if run.read_only else [])],  # noqa: S108
    }
    if run.user:
        service["user"] = run.user
    if run.shm_size:
        service["shm_size"] = run.shm_size
    if run.ulimits:
        service["ulimits"] = dict(run.ulimits)
    if run.read_only:
        service["read_only"] = True
    if not run.gpus.none:
        device: dict[str, Any] = {"driver": "nvidia", "capabilities": ["gpu", *run.gpus.capabilities]}
        if run.gpus.device_ids:
            device["device_ids"] = list(run.gpus.device_ids)
        else:
            device["count"] = "all" if run.gpus.count == ALL else run.gpus.count
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    # A dollar begins a variable of Compose's own, two are one.
    escaped = each_string(service, lambda text: text.replace("$", "$$"))
    steps = ["docker compose -f THIS-FILE run --rm verify > output.txt"]
    return head(run, steps) + yaml_text({"services": {"verify": escaped}})


def _unpacking(run: ElsewhereRun) -> list[str]:
    """Python that unpacks the suite from its environment, which it then forgets; Python 2.7 can read it too."""
    program = (
        "import base64, io, os, sys, zipfile\n"
        f"names = sorted(name for name in os.environ if name.startswith('{_VARIABLE}_'))\n"
        "packed = base64.b64decode(''.join(os.environ.pop(name) for name in names))\n"
        f"zipfile.ZipFile(io.BytesIO(packed)).extractall('{SUITE_FOLDER}')\n"
        f"os.execv(sys.executable, [sys.executable] + {suite_arguments()!r})\n"
    )
    if len(run.interpreters) == 1:
        return [run.interpreters[0], "-c", program]
    tried = " ".join(run.interpreters)
    shell = f'for python in {tried}; do command -v "$python" >/dev/null 2>&1 && exec "$python" -c "$0"; done; exit 127'
    return ["/bin/sh", "-c", shell, program]


def _packed(run: ElsewhereRun) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(run.files.items()):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return raw.getvalue()
