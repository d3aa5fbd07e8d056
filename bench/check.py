"""Time and memory of judging 100 stacks on 1,000 hosts, on one core, and of starting ``stackbuild check``.

Run: python -m bench.check
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.start import start
from stackbuild.compat.check import Subject, check
from stackbuild.compat.contents import Contents, Distribution
from stackbuild.compat.versions import parse_cuda
from stackbuild.facts.tables import Facts
from stackbuild.host.model import Host, HostGpu
from stackbuild.host.offer import host_offer
from stackbuild.site_policy import Policy

STACKS, HOSTS = 100, 1000
DRIVERS_PER_BRANCH = 4
START_ROUNDS = 15
START_MARK = 3.0
STACK_TEXT = """\
schema: 1
name: bench
base: {image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}
python: "3.12"
frameworks:
  torch: {version: "2.14.1", variant: cu130}
target: {gpus: [H200], driver: ">=580.65"}
"""


def subjects(facts: Facts) -> list[Subject]:
    """A hundred stacks: torch builds on bases with their demand, every third with ONNX Runtime."""
    rows = itertools.cycle(row for row in facts.table("torch_variants").rows)
    orts = itertools.cycle(row.version for row in facts.table("onnxruntime_releases").rows)
    made = []
    for number, row in zip(range(STACKS), rows, strict=False):
        listed = [Distribution("torch", f"{row.version}+{row.variant}")]
        if number % 3 == 0:
            listed.append(Distribution("onnxruntime-gpu", next(orts)))
        contents = Contents(
            name=f"stack-{number}",
            base_cuda=parse_cuda(row.cuda),
            environment={"CUDA_VERSION": row.cuda, "NVIDIA_REQUIRE_CUDA": f"cuda>={row.cuda}"},
            distributions=tuple(listed),
            expects_gpu=True,
        )
        made.append(Subject(contents, "lock", accepts=("native", "minor", "forward")[number % 3]))
    return made


def hosts() -> list[Host]:
    """A thousand hosts: every branch with four driver releases, every GPU of the facts, no two hosts alike."""
    facts = Facts()
    branches = [row.branch for row in facts.table("driver_branches").rows if row.max_cuda]
    gpus = [row.product for row in facts.table("gpus").rows]
    return [
        Host(
            name=f"host-{number}",
            driver=f"{branches[number % len(branches)]}.{54 + number // len(branches) % DRIVERS_PER_BRANCH}",
            machine="x86_64",
            gpus=(HostGpu(name=gpus[number % len(gpus)]),),
        )
        for number in range(HOSTS)
    ]


def judge() -> None:
    """Print seconds and peak memory of the matrix."""
    facts = Facts()
    stacks, fleet = subjects(facts), hosts()
    before = time.process_time()
    offers = [host_offer(host, facts) for host in fleet]
    report = check(stacks, offers, facts, Policy(), date(2026, 11, 30))
    seconds = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{STACKS} stacks x {HOSTS} hosts: {len(report.cells)} cells in {seconds:.2f} s, peak {peak:.0f} MB"
    )


def one_stack() -> None:
    """Print how long the check of one stack takes against importing click and pydantic."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stacks").mkdir()
        (folder / "stacks" / "bench.yaml").write_text(STACK_TEXT)
        ours = [sys.executable, "-m", "stackbuild", "check", "bench"]
        peer = [sys.executable, "-c", "import click, pydantic"]
        taken = start(ours, peer, folder=folder, rounds=START_ROUNDS)
    print(
        f"check of one stack {taken.ours * 1000:.0f} ms, import click, pydantic {taken.peer * 1000:.0f} ms: "
        f"ratio {taken.ratio:.2f} (mark: at most {START_MARK})"
    )


if __name__ == "__main__":
    judge()
    one_stack()
