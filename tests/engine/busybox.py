"""A busybox image of 2 MB from a docker-archive made by hand: no registry is needed for engine tests."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX_APPLETS = (
    "sh",
    "cat",
    "echo",
    "sleep",
    "mkdir",
    "rm",
    "touch",
    "id",
    "ls",
    "env",
    "dd",
    "pwd",
    "kill",
)


def busybox_layer() -> bytes:
    """The layer's tar: busybox, some of its applets, /tmp and /etc/passwd."""
    binary = shutil.which("busybox") or "/bin/busybox"
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:

        def add(name: str, kind: bytes, mode: int, data: bytes = b"", link: str = "") -> None:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.size, entry.linkname = kind, mode, len(data), link
            tar.addfile(entry, io.BytesIO(data))

        for folder in ("bin", "etc", "srv"):
            add(folder, tarfile.DIRTYPE, 0o755)
        add("tmp", tarfile.DIRTYPE, 0o1777)
        add("bin/busybox", tarfile.REGTYPE, 0o755, Path(binary).read_bytes())
        for applet in BUSYBOX_APPLETS:
            add(f"bin/{applet}", tarfile.SYMTYPE, 0o777, link="busybox")
        add("etc/passwd", tarfile.REGTYPE, 0o644, b"root:x:0:0:root:/root:/bin/sh\n")
    return sink.getvalue()


def docker_archive(layers: list[bytes], config: dict[str, Any], tags: list[str]) -> tuple[bytes, str]:
    """(archive, config digest) of an image with these layers."""
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    whole = {
        "architecture": "amd64",
        "os": "linux",
        "created": "2023-11-14T22:13:20Z",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": "2023-11-14T22:13:20Z", "created_by": "by hand"} for _ in digests],
    }
    config_bytes = json.dumps(whole, sort_keys=True).encode()
    config_digest = hashlib.sha256(config_bytes).hexdigest()
    manifest = [
        {
            "Config": f"{config_digest}.json",
            "RepoTags": tags,
            "Layers": [f"{digest}/layer.tar" for digest in digests],
        }
    ]
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        files = [(f"{config_digest}.json", config_bytes)]
        files += [(f"{digest}/layer.tar", layer) for digest, layer in zip(digests, layers, strict=True)]
        files.append(("manifest.json", json.dumps(manifest).encode()))
        for name, data in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return sink.getvalue(), f"sha256:{config_digest}"
