"""Makes layers and saved images out of a few lines."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from stackbuild.progress import SilentObserver
from stackbuild.scan.image_files import ImageFiles
from stackbuild.scan.layer_scanner import scan_tar
from stackbuild.scan.sources.interface import ImageDescription

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression = Literal["", "gzip", "zstd"]
# A file's content; ``-> TARGET`` as text makes a symbolic link, ``=> TARGET`` a hard link, None a folder.
Content = bytes | str | None


def layer_tar(files: Mapping[str, Content], modes: Mapping[str, int] | None = None) -> bytes:
    """A layer's tar with these paths, in this order."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            data = content if isinstance(content, bytes) else b""
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str) and content.startswith("-> "):
                member.type, member.linkname = tarfile.SYMTYPE, content[3:]
            elif isinstance(content, str) and content.startswith("=> "):
                member.type, member.linkname = tarfile.LNKTYPE, content[3:]
            elif isinstance(content, str):
                data = content.encode()
            member.size = len(data)
            member.mode = (modes or {}).get(path, member.mode)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def image_config(layers: Sequence[bytes], **run_config: Any) -> dict[str, Any]:
    """An image's configuration over these layers."""
    return {
        "os": "linux",
        "architecture": "amd64",
        "config": run_config,
        "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
        "history": [{"created_by": f"step {number}"} for number, _ in enumerate(layers)],
    }


def image_files(*layers: Mapping[str, Content], name: str = "image", **run_config: Any) -> ImageFiles:
    """An image's files, scanned from layers made of these paths.

    Args:
        layers: Path → content, lowest layer first.
        name: The image's name.
        run_config: ``Env``, ``Labels``, … of its configuration.
    """
    tars = [layer_tar(layer) for layer in layers]
    config = image_config(tars, **run_config)
    description = ImageDescription(
        name, config, tuple(config["rootfs"]["diff_ids"]), commands=("",) * len(tars)
    )
    return ImageFiles(description, [scan_tar(io.BytesIO(tar), seekable=True) for tar in tars])


def digest(data: bytes) -> str:
    """``sha256:…``"""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def write_docker_archive(path: Path, layers: Sequence[bytes], **run_config: Any) -> Path:
    """What ``docker save`` of an older engine writes."""
    config = json.dumps(image_config(layers, **run_config)).encode()
    names = [f"{number}/layer.tar" for number, _ in enumerate(layers)]
    manifest = [{"Config": "config.json", "RepoTags": ["made:1"], "Layers": names}]
    files: dict[str, Content] = dict(zip(names, layers, strict=True))
    files |= {"config.json": config, "manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(layer_tar(files))
    return path


def compressed(data: bytes, compression: Compression) -> bytes:
    """The data as a layer of this compression has it; zstd in two frames, as parallel compressors write it."""
    if compression == "gzip":
        return gzip.compress(data, mtime=0)
    if compression == "zstd":
        half = len(data) // 2
        return zstd.compress(data[:half]) + zstd.compress(data[half:])
    return data


def oci_layout_files(
    layers: Sequence[bytes], *, compression: Compression = "gzip", **run_config: Any
) -> dict[str, bytes]:
    """The files of an OCI layout with one image for linux/amd64, path → content."""
    config = json.dumps(image_config(layers, **run_config)).encode()
    blobs = [compressed(layer, compression) for layer in layers]
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "config": {"digest": digest(config), "size": len(config)},
            "layers": [{"digest": digest(blob), "size": len(blob)} for blob in blobs],
        }
    ).encode()
    platform = {"os": "linux", "architecture": "amd64"}
    other = {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}}
    index = {"schemaVersion": 2, "manifests": [other, {"digest": digest(manifest), "platform": platform}]}
    files = {f"blobs/{digest(data).replace(':', '/')}": data for data in (config, manifest, *blobs)}
    return {
        **files,
        "index.json": json.dumps(index).encode(),
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
    }


SILENT = SilentObserver()
