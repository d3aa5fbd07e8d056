"""Base images for tests: busybox, a bootstrapped Debian, and a stand-in for nvidia/cuda."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.cache import cached
from tests.support.debs import compress
from tests.support.nvidia_config import nvidia_configuration
from tests.support.registry import Registry

MOMENT = 1_700_000_000
CREATED = "2023-11-14T22:13:20Z"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DROPPED = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")
_APPLETS = (
    *("cat", "chmod", "chown", "cp", "cut", "echo", "env", "false", "find", "getopt", "grep", "head", "id"),
    *("kill", "ln", "ls", "mkdir", "mktemp", "mv", "printf", "pwd", "readlink", "rm", "sed", "sh", "sleep"),
    *("sort", "stat", "tail", "tar", "test", "touch", "tr", "true", "uname", "wc", "whoami", "xargs"),
)


def busybox_rootfs() -> bytes:
    """A root file system of 2 MB: busybox, passwd, group, a usr-merged /lib and /bin, a sticky /tmp."""
    program = next((path for path in map(Path, ("/bin/busybox", "/usr/bin/busybox")) if path.exists()), None)
    assert program, "busybox-static is not installed; `make test` installs it"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in ("etc", "root", "usr", "usr/bin", "usr/lib", "usr/local", "var", "var/lib"):
            _add(archive, path, tarfile.DIRTYPE, 0o755)
        _add(archive, "tmp", tarfile.DIRTYPE, 0o1777)
        for link in ("bin", "lib"):
            _add(archive, link, tarfile.SYMTYPE, 0o777, target=f"usr/{link}")
        _add(archive, "etc/passwd", content=b"root:x:0:0:root:/root:/bin/sh\nubuntu:x:1000:1000::/:/bin/sh\n")
        _add(archive, "etc/group", content=b"root:x:0:\nubuntu:x:1000:\n")
        _add(archive, "etc/os-release", content=b'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
        _add(archive, "usr/bin/busybox", mode=0o755, content=program.read_bytes())
        for applet in _APPLETS:
            _add(archive, f"usr/bin/{applet}", tarfile.SYMTYPE, 0o777, target="busybox")
    return raw.getvalue()


def debian_rootfs(*, python: bool = True) -> Path:
    """A tar of Debian bookworm (minbase, with python3 and python3-venv where asked), kept in the cache."""
    packages = "ca-certificates,python3,python3-venv" if python else "ca-certificates"
    kind = "python" if python else "plain"

    def make(target: Path) -> None:
        program = shutil.which("mmdebstrap")
        assert program, "mmdebstrap is not installed; `make test` installs it"
        done = subprocess.run(
            [
                *(program, "--quiet", "--variant=minbase", f"--include={packages}", "--format=tar"),
                *(f"--dpkgopt=path-exclude={pattern}" for pattern in _DROPPED),
                *("bookworm", str(target)),
            ],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(MOMENT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    return cached(f"bookworm-{kind}.tar", make)


def docker_archive(
    layers: Iterable[Path | bytes],
    *,
    ref: str | None = None,
    config: Mapping[str, Any] | None = None,
    architecture: str = "amd64",
) -> tuple[bytes, str]:
    """An archive for ``images.load`` made by hand, and the image id it will have.

    Args:
        layers: Uncompressed tars.
        ref: ``repository:tag`` it gets.
        config: The inner ``config`` of the image: Env, Cmd, Labels and so on.
        architecture: Of the image.
    """
    contents = [layer.read_bytes() if isinstance(layer, Path) else layer for layer in layers]
    diff_ids = ["sha256:" + hashlib.sha256(content).hexdigest() for content in contents]
    configuration = image_configuration(diff_ids, config or {"Env": [_PATH]}, architecture)
    digest = hashlib.sha256(configuration).hexdigest()
    names = [f"{diff_id.split(':')[1]}/layer.tar" for diff_id in diff_ids]
    manifest = [{"Config": f"{digest}.json", "RepoTags": [ref] if ref else None, "Layers": names}]
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        _add(archive, f"{digest}.json", content=configuration)
        for name, content in zip(names, contents, strict=True):
            _add(archive, name, content=content)
        _add(archive, "manifest.json", content=json.dumps(manifest).encode())
    return raw.getvalue(), f"sha256:{digest}"


def image_configuration(diff_ids: list[str], config: Mapping[str, Any], architecture: str = "amd64") -> bytes:
    """An image's configuration as JSON with sorted keys."""
    document = {
        "architecture": architecture,
        "os": "linux",
        "created": CREATED,
        "config": dict(config),
        "history": [{"created": CREATED, "created_by": f"layer {number}"} for number in range(len(diff_ids))],
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def push_nvidia_base(
    registry: Registry,
    tag: str = "13.0.3-base-ubuntu24.04",
    *,
    repository: str = "nvidia/cuda",
    rootfs: Path | bytes | None = None,
) -> str:
    """Push a stand-in for an nvidia/cuda base and return its index digest.

    Its configuration is the real base's (``nvidia_config.py``); its files are Debian bookworm's with
    Python, or those of ``rootfs``. The index has a linux/amd64 child.

    Args:
        registry: Where it goes.
        tag: The tag; its version decides CUDA_VERSION and NVIDIA_REQUIRE_CUDA.
        repository: The repository.
        rootfs: Another root file system, as a tar.
    """
    chosen = debian_rootfs() if rootfs is None else rootfs
    content = chosen.read_bytes() if isinstance(chosen, Path) else chosen
    diff_id = "sha256:" + hashlib.sha256(content).hexdigest()
    compressed = cached(
        f"gzip/{diff_id.split(':')[1]}.tar.gz", lambda path: _write(path, compress(content, level=1))
    )
    configuration = image_configuration([diff_id], nvidia_configuration(tag))
    child = registry.put_image(repository, configuration, [compressed.read_bytes()])
    return registry.put_index(repository, tag, {"linux/amd64": child})


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _add(
    archive: tarfile.TarFile,
    path: str,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    *,
    content: bytes = b"",
    target: str = "",
) -> None:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.mtime, entry.linkname = kind, mode, MOMENT, target
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
