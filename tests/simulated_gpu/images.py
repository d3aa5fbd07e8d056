"""Images for simulated hosts: Debian with Python and pynvml, with an environment and files of a test's own."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pynvml

from tests.support.base_image import busybox_rootfs, debian_rootfs, docker_archive, image_configuration

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def python_image(
    engine: Engine,
    *,
    environment: Mapping[str, str] | None = None,
    files: Mapping[str, Path | bytes] | None = None,
    user: str = "",
) -> str:
    """The name of an image with ``python3`` and ``import pynvml``, loaded when the engine has it not.

    Args:
        engine: The engine.
        environment: Of the image, for example NVIDIA_REQUIRE_CUDA.
        files: Path in the image to content or a file of this machine; all are executable.
        user: The image's user.
    """
    base = debian_rootfs()
    added = [_layer({"usr/lib/python3/dist-packages/pynvml.py": Path(pynvml.__file__)})]
    added += [_layer(files)] if files else []
    diff_ids = [_digest(base), *("sha256:" + hashlib.sha256(layer).hexdigest() for layer in added)]
    env = [_PATH, *(f"{name}={value}" for name, value in (environment or {}).items())]
    configuration = image_configuration(diff_ids, {"Env": env, "User": user})
    ref = f"simulated-gpu:{hashlib.sha256(configuration).hexdigest()[:12]}"
    if engine.image(ref) is None:
        # The graph-driver store takes an archive without the layers it has; the base is 180 MB.
        has_base = not engine.info().containerd_store and any(
            chain[:1] == tuple(diff_ids[:1]) for chain in engine.layer_chains()
        )
        engine.load(
            [_archive(ref, configuration, diff_ids, [None if has_base else base.read_bytes(), *added])]
        )
    return ref


@cache
def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _archive(
    ref: str, configuration: bytes, diff_ids: Sequence[str], layers: Sequence[bytes | None]
) -> bytes:
    """An archive for ``images.load``; a layer that is None is left out."""
    config = f"{hashlib.sha256(configuration).hexdigest()}.json"
    names = [f"{diff_id.split(':')[1]}/layer.tar" for diff_id in diff_ids]
    manifest = [{"Config": config, "RepoTags": [ref], "Layers": names}]
    files = {config: configuration, "manifest.json": json.dumps(manifest).encode()}
    return _tar(files | {name: layer for name, layer in zip(names, layers, strict=True) if layer is not None})


def _layer(files: Mapping[str, Path | bytes]) -> bytes:
    return _tar(
        {
            path: content.read_bytes() if isinstance(content, Path) else content
            for path, content in files.items()
        }
    )


def _tar(files: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return raw.getvalue()


def busybox_image(engine: Engine) -> str:
    """The name of an image of 2 MB with a shell."""
    archive, _ = docker_archive([busybox_rootfs()], ref="simulated-gpu:busybox")
    if engine.image("simulated-gpu:busybox") is None:
        engine.load([archive])
    return "simulated-gpu:busybox"
