"""Nights for tests: what they hold is chosen, the models are the real ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from stackbuild.drift.model import Drift, FileChange, LayerChange, PackageChange, PinChange, Side
from stackbuild.findings import Finding, Verdict
from stackbuild.nightly.model import NewerVersion, Night, StackNight

FIRST = datetime(2025, 12, 1, 2, 15, tzinfo=UTC)
PINS = {
    "stack": "torch-cu130",
    "os": "ubuntu 24.04",
    "base": {"name": "nvidia/cuda:13.0.3-base-ubuntu24.04", "digest": "sha256:" + "b" * 64},
    "cuda": "13.0.3",
    "cudnn": None,
    "compute_capabilities": {"torch": ["sm_90", "compute_90"]},
}
DRIFT = Drift(
    before=Side(name="torch-cu130, the night before", kind="image", platform="linux/amd64", digest="sha256:" + "1" * 64),
    after=Side(name="torch-cu130", kind="image", platform="linux/amd64", digest="sha256:" + "2" * 64),
    levels=("pins", "packages", "files"),
    pins=(PinChange(pin="cuda", before="12.6", after="13.0", breaking=True, why="A CUDA major ends old drivers."),),
    packages=(
        PackageChange(
            kind="python", name="numpy", change="changed", before="2.1.0", after="2.1.1", what=("version",)
        ),
        PackageChange(kind="deb", name="libfoo", change="added", after="1.2-3"),
    ),
    files=(
        FileChange(
            path="/opt/venv/lib/python3.12/site-packages/numpy/version.py",
            change="changed",
            what=("content",),
            owner="numpy 2.1.1",
            kind="python",
            before="300 B 0a1b2c3d",
            after="301 B 4e5f6071",
        ),
        FileChange(path="/var/log/dpkg.log", change="changed", what=("content",), noise="logs", kind="text"),
    ),
    first_layer=LayerChange(
        number=7,
        maker="other wheels",
        before="sha256:" + "3" * 64,
        after="sha256:" + "4" * 64,
        inputs=("numpy 2.1.0 became 2.1.1",),
    ),
)  # fmt: skip


def finding(code: str, verdict: Verdict = Verdict.PASS, **fields: Any) -> Finding:
    return Finding(code=code, verdict=verdict, **{"summary": f"{code} was judged", **fields})


def result(stack: str = "torch-cu130", *, number: int = 0, **fields: Any) -> StackNight:
    """A stack that is as it was, with every field filled; ``number`` makes image and sizes other ones."""
    return StackNight(
        **{
            "stack": stack,
            "platform": "linux/amd64",
            "outcome": "unchanged",
            "findings": (finding("torch-cuda"), finding("driver-too-old")),
            "complete": True,
            "config_digest": "sha256:" + f"{number:064x}",
            "diff_ids": tuple("sha256:" + f"{number + layer:064x}" for layer in range(3)),
            "lock_sha256": f"{number:064x}",
            "inputs_sha256": f"{number + 1:064x}",
            "image": f"stackbuild-nightly/{stack}:latest",
            "compared_with": "the image of the last good night",
            "size": 3_000_000_000 + number * 1_000_000,
            "seconds": {"inputs": 2.5, "rebuild": 40.0 + number, "total": 60.0 + number},
            "pins": PINS | {"stack": stack},
            "newer": (
                NewerVersion(
                    kind="python", name="numpy", locked="2.1.0", newer="2.1.1", verdict=Verdict.PASS, reason="It fits."
                ),
            ),
            "reports": {"verification": f"reports/{stack}/verification.html"},
            **fields,
        }
    )  # fmt: skip


def night(*stacks: StackNight, number: int = 0, **fields: Any) -> Night:
    """The night ``number`` days after the first."""
    started = FIRST + timedelta(days=number)
    return Night(
        **{
            "id": f"{started:%Y%m%dT%H%M%SZ}-{number:04x}",
            "started": f"{started:%Y-%m-%dT%H:%M:%SZ}",
            "seconds": 600.5,
            "host": "builder-1",
            "version": "0.1.0",
            "stacks": stacks or (result(),),
            **fields,
        }
    )
