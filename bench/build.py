"""``stackbuild build`` against a good hand-written multi-stage Dockerfile, on the same base and the same wheels.

    python -m bench.build

Both sides start with the base in the engine and the wheels on disk, and both end with an image in the engine
whose virtual environment has its byte-code. Cold: no layer and no build cache. Leaf: one small pure-Python
package has a new version. Locking (there: writing requirements with hashes by hand) is not timed.
"""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import docker

from bench.stand import NAME, Stand, stand
from stackbuild.lock.file import read_lock
from stackbuild.lock.model import LockedWheel
from stackbuild.store.store import Store

COLD_MARK = 0.5
LEAF_MARK = 0.08
MEMORY_MARK = 400_000_000
PEER = "stackbuild-bench-peer:latest"

_LABEL = "stackbuild-bench"  # on the peer's stages, to find them again
# Heavy, stable packages in a step of their own, so that a leaf change does not install them again.
_DOCKERFILE = """\
FROM {base} AS builder
LABEL {label}=
RUN python3 -m venv /opt/venv
COPY heavy /wheels/heavy
COPY heavy.txt /
RUN /opt/venv/bin/pip install --no-cache-dir --no-index --find-links /wheels/heavy --no-deps \
    --require-hashes -r heavy.txt
COPY leaf /wheels/leaf
COPY leaf.txt /
RUN /opt/venv/bin/pip install --no-cache-dir --no-index --find-links /wheels/leaf --no-deps \
    --require-hashes -r leaf.txt

FROM {base}
COPY --from=builder /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""


def main() -> int:
    """Run both sides cold and after a leaf change; print times, ratios and peak memory."""
    with tempfile.TemporaryDirectory(prefix="stackbuild-bench-") as folder:
        client = docker.from_env(timeout=600)
        try:
            with stand(Path(folder)) as ground:
                return _compare(ground, client)
        finally:
            _forget(client)


def _compare(ground: Stand, client: docker.DockerClient) -> int:
    client.images.pull(ground.base)
    ground.write_spec("1.0")
    ground.stackbuild("lock", NAME)
    peer_cold = _peer(ground, client, nocache=True)
    cold = ground.stackbuild("build", "--no-cache", NAME)
    ground.write_spec("1.1")
    ground.stackbuild("lock", NAME)
    peer_leaf = _peer(ground, client, nocache=False)
    leaf = ground.stackbuild("build", NAME)
    unchanged = ground.stackbuild("build", NAME)
    peak = max(run.peak for run in (cold, leaf, unchanged))
    cold_ratio, leaf_ratio = cold.seconds / peer_cold, leaf.seconds / peer_leaf
    print(f"{'':24}{'Dockerfile':>12}{'stackbuild':>12}{'ratio':>8}{'mark':>8}")
    print(f"{'cold':24}{peer_cold:10.1f} s{cold.seconds:10.1f} s{cold_ratio:8.2f}{COLD_MARK:8.2f}")
    print(f"{'leaf changed':24}{peer_leaf:10.1f} s{leaf.seconds:10.1f} s{leaf_ratio:8.2f}{LEAF_MARK:8.2f}")
    print(f"{'nothing changed':24}{'':12}{unchanged.seconds:10.2f} s")
    print(f"peak memory {peak / 1e6:.0f} MB (mark: under {MEMORY_MARK / 1e6:.0f} MB)")
    met = cold_ratio <= COLD_MARK and leaf_ratio <= LEAF_MARK and peak < MEMORY_MARK
    return 0 if met else 1


def _peer(ground: Stand, client: docker.DockerClient, *, nocache: bool) -> float:
    """Seconds that the hand-written Dockerfile takes, sending its context included."""
    lock = read_lock(ground.folder / "stacks" / f"{NAME}.lock")
    store = Store(ground.store)
    context = ground.folder / "context"
    shutil.rmtree(context, ignore_errors=True)
    leaves = [wheel for wheel in lock.platforms["linux/amd64"].wheels if wheel.name == "bench-leaf"]
    heavy = [wheel for wheel in lock.platforms["linux/amd64"].wheels if wheel.name != "bench-leaf"]
    for name, wheels in (("heavy", heavy), ("leaf", leaves)):
        (context / name).mkdir(parents=True)
        for wheel in wheels:
            blob = store.blob(wheel.sha256)
            if blob is None:
                raise SystemExit(f"{wheel.file} is not in the store")
            (context / name / wheel.file).hardlink_to(blob)
        (context / f"{name}.txt").write_text("".join(map(_requirement, wheels)))
    (context / "Dockerfile").write_text(_DOCKERFILE.format(base=ground.base, label=_LABEL))
    began = time.perf_counter()
    with tempfile.TemporaryFile() as body:
        _tar(context, body)
        body.seek(0)
        client.images.build(
            fileobj=body, custom_context=True, tag=PEER, nocache=nocache, rm=True, forcerm=True
        )
    return time.perf_counter() - began


def _requirement(wheel: LockedWheel) -> str:
    return f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n"


def _tar(folder: Path, body: io.BufferedRandom) -> None:
    """The context as a tar with fixed times, so that only content decides what the engine has cached."""

    def fixed(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = 0
        return entry

    with tarfile.open(fileobj=body, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, str(path.relative_to(folder)), recursive=False, filter=fixed)


def _forget(client: docker.DockerClient) -> None:
    """Remove what both sides left in the engine: images, the peer's build stages, the base's name here."""
    for image in client.images.list():
        if any(tag.split(":")[0] in (PEER.split(":")[0], NAME) for tag in image.tags):
            client.images.remove(str(image.id), force=True)
    client.images.prune(filters={"dangling": True, "label": _LABEL})
    for image in client.images.list():
        for name in image.attrs.get("RepoDigests") or []:
            if "/bench/debian-python@" in name:
                client.images.remove(name)


if __name__ == "__main__":
    sys.exit(main())
