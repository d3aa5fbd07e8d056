"""Which staging tags nobody needs any more."""

from __future__ import annotations

import subprocess
import sys
import time

from stackbuild.publish.staging import inputs_tag, is_internal, left_over, run_tag, staged_tag

DIGEST = "sha256:" + "a" * 64


def test_tags_of_dead_runs_and_old_ones_are_left_over() -> None:
    now = time.time()
    program = "import time; from stackbuild.publish.staging import run_tag; print(run_tag(time.time(), '0'))"
    dead = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    of_dead = dead.stdout.strip()
    mine = run_tag(now, "0")
    machine, pid, start = mine.split("-")[2:5]
    elsewhere = f"staging-{int(now)}-{'0' * 12}-{pid}-{start}-0"
    old_elsewhere = f"staging-{int(now) - 90_000}-{'0' * 12}-{pid}-{start}-0"
    fresh, old = staged_tag(now, DIGEST), staged_tag(now - 90_000, DIGEST)
    tags = ["latest", "staging-notes", of_dead, mine, elsewhere, old_elsewhere, fresh, old]
    assert left_over(tags, now) == [of_dead, old_elsewhere, old]
    assert machine in of_dead


def test_what_is_for_machines_is_not_for_picking() -> None:
    internal = [run_tag(1, "0"), staged_tag(1, DIGEST), inputs_tag("b" * 64), f"sha256-{'c' * 64}"]
    assert all(is_internal(tag) for tag in [*internal, f"sha256-{'c' * 64}.sig", "layer-abc"])
    assert not is_internal("2.13.0-cu130-py312-0123456789ab")
    assert not is_internal("latest")
