"""Images made on the spot, and their comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stackbuild.drift.compare import compare_images
from stackbuild.drift.model import Drift, Level
from stackbuild.scan.sources.archive import ArchiveSource
from stackbuild.store.store import Store
from tests.support.layer_tars import Content, image_config, layer_tar

SITE = "opt/venv/lib/python3.11/site-packages"
OS: dict[str, Content] = {"etc/os-release": "ID=debian\nVERSION_ID=12\n"}


def archive(
    path: Path, *layers: bytes, history: Sequence[str] = (), created: str = "", **run_config: Any
) -> Path:
    """A saved image of these tars."""
    config = image_config(layers, **run_config)
    if history:
        config["history"] = [{"created_by": text} for text in history]
    if created:
        config["created"] = created
    names = [f"{number}/layer.tar" for number, _ in enumerate(layers)]
    manifest = [{"Config": "config.json", "RepoTags": ["made:1"], "Layers": names}]
    files: dict[str, Content] = dict(zip(names, layers, strict=True))
    files |= {"config.json": json.dumps(config).encode(), "manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(layer_tar(files))
    return path


def compared(before: Path, after: Path, *, store: Store | None = None, level: Level = "files") -> Drift:
    with ArchiveSource(before) as old, ArchiveSource(after) as new:
        return compare_images(old, new, store=store, level=level)


def of_layers(
    folder: Path,
    before: Sequence[Mapping[str, Content]],
    after: Sequence[Mapping[str, Content]],
    **run_config: Any,
) -> Drift:
    """The drift between two images of these layers."""
    return compared(
        archive(folder / "before.tar", *(layer_tar(layer) for layer in before), **run_config),
        archive(folder / "after.tar", *(layer_tar(layer) for layer in after), **run_config),
    )


def dist(
    name: str, version: str, *metadata: str, files: Mapping[str, Content] | None = None
) -> dict[str, Content]:
    """An installed distribution with one module and a RECORD."""
    root = f"{SITE}/{name.replace('-', '_')}-{version}.dist-info"
    modules: dict[str, Content] = dict(files or {f"{name.replace('-', '_')}.py": f"V = '{version}'\n"})
    found: dict[str, Content] = {f"{SITE}/{path}": content for path, content in modules.items()}
    lines = "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata])
    found[f"{root}/METADATA"] = f"{lines}\n"
    listed = [*modules, f"{root.rpartition('/')[2]}/METADATA", f"{root.rpartition('/')[2]}/RECORD"]
    found[f"{root}/RECORD"] = "".join(f"{path},,\n" for path in listed)
    return found


def deb(name: str, version: str) -> str:
    return f"Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n\n"
