"""A simulated nvidia-container-runtime: runc, with the hook put into a container's configuration first.

Standard library only: it runs at every start of a container with ``runtime=nvidia``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.simulated_gpu.runtime_hook import HOOK_NAME


def main(argv: list[str], hook: Path) -> None:
    """Add the hook on ``create``, then become runc with the same arguments.

    Args:
        argv: As the engine calls an OCI runtime.
        hook: The hook's program.
    """
    if "create" in argv:
        _add_hook(Path(argv[argv.index("--bundle") + 1]) / "config.json", hook)
    os.execvp("runc", ["runc", *argv[1:]])


def _add_hook(file: Path, hook: Path) -> None:
    config = json.loads(file.read_text())
    added = {
        "path": str(hook),
        "args": [HOOK_NAME, "prestart"],
        "env": [f"{name}={value}" for name, value in os.environ.items()],
    }
    config.setdefault("hooks", {}).setdefault("prestart", []).append(added)
    file.write_text(json.dumps(config))
