"""What both sides of the build benchmark stand on: one base image and one set of local wheels."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.support.base_image import debian_rootfs, image_configuration
from tests.support.debs import compress
from tests.support.registry import Registry
from tests.support.torch_wheel import torch_cpu_wheel
from tests.support.wheels import make_wheel

NAME = "bench-torch-cpu"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SPEC = """\
schema: 1
name: {name}
base: {{image: "{address}/bench/debian-python", tag: bookworm}}
python: "3.11"
frameworks:
  torch: {{version: "2.13.0", variant: cpu}}
  onnxruntime: {{version: "1.31.1"}}
packages: [numpy, bench-leaf=={leaf}]
indexes:
  leaves: {{url: "file://{leaves}", packages: [bench-leaf]}}
"""


@dataclass(frozen=True)
class Run:
    """One run of a command: wall-clock seconds and the largest resident set of its processes in bytes."""

    seconds: float
    peak: int


class Stand:
    """A project folder with the stack, a store of its own, a registry with the base, an index with the leaf.

    Args:
        folder: An empty folder.
        registry: A running registry.
    """

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.folder = folder
        self.store = folder / "store"
        self._leaves = folder / "leaves"
        self._registry = registry
        for version in ("1.0", "1.1"):
            make_wheel(self._leaves, "bench-leaf", version)
        (folder / "stackbuild.toml").write_text(
            f'[indexes]\npytorch-cpu = {{folder = "{torch_cpu_wheel().parent}"}}\n'
        )
        self.base = self._push_base()

    def _push_base(self) -> str:
        """Push the base; returns a reference by digest, the same for both sides."""
        rootfs = debian_rootfs().read_bytes()
        diff_id = "sha256:" + sha256(rootfs).hexdigest()
        config = image_configuration([diff_id], {"Env": [_PATH], "Cmd": ["/bin/bash"]})
        child = self._registry.put_image("bench/debian-python", config, [compress(rootfs, level=1)])
        self._registry.put_index("bench/debian-python", "bookworm", {"linux/amd64": child})
        return f"{self._registry.address}/bench/debian-python@{child[0]}"

    def write_spec(self, leaf: str) -> None:
        """Write the stack with one version of its leaf package."""
        text = _SPEC.format(name=NAME, address=self._registry.address, leaf=leaf, leaves=self._leaves)
        (self.folder / "stacks").mkdir(exist_ok=True)
        (self.folder / "stacks" / f"{NAME}.yaml").write_text(text)

    def stackbuild(self, *arguments: str) -> Run:
        """Run one command of stackbuild in the project folder."""
        environment = {**os.environ, "STACKBUILD_STORE": str(self.store), "NO_COLOR": "1"}
        environment["PYTHONPATH"] = str(Path(__file__).parent.parent)
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "stackbuild.cli.main", *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"stackbuild {' '.join(arguments)} ended with {process.returncode}")
        return Run(time.perf_counter() - began, usage.ru_maxrss * 1024)  # KiB: getrusage(2)


@contextmanager
def stand(folder: Path) -> Iterator[Stand]:
    """A stand in an empty folder, with its registry running."""
    with Registry(folder / "registry") as registry:
        yield Stand(folder, registry)
