"""Stacks for build tests: a spec on disk, and a lock made by hand for a base that the engine has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stackbuild.engine.models import ImageInfo
from stackbuild.lock.model import (
    ImageBaseLock,
    Lock,
    LockedWheel,
    OsLock,
    PlatformLock,
    PythonLock,
    WheelGroup,
)
from stackbuild.spec.load import LoadedSpec, load_spec
from stackbuild.spec.requirements_input import lock_inputs_sha256

CREATED = "2026-11-01T00:00:00Z"


def write_stack(folder: Path, name: str, **parts: Any) -> LoadedSpec:
    """Write ``NAME.yaml`` (as JSON, which YAML reads) and load it.

    Args:
        folder: Where it goes.
        name: The stack's name.
        parts: Keys of the spec, underscores for hyphens.
    """
    data = {"schema": 1, "name": name, "base": {"image": "test/base", "tag": "1"}}
    data |= {key.replace("_", "-"): value for key, value in parts.items()}
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(data))
    return load_spec(path)


def locked_wheel(
    path: Path, name: str, version: str, group: WheelGroup = "other", **more: Any
) -> LockedWheel:
    """A lock's row for a wheel on disk."""
    data = path.read_bytes()
    return LockedWheel(
        name=name,
        version=version,
        index=more.pop("index", "default"),
        file=path.name,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        group=group,
        **more,
    )


def image_lock(
    stack: LoadedSpec,
    base: ImageInfo,
    *,
    wheels: Sequence[LockedWheel] = (),
    python: PythonLock | None = None,
    config: dict[str, Any] | None = None,
) -> Lock:
    """A lock of a stack on an image the engine has."""
    platform = PlatformLock(
        base=ImageBaseLock(
            image="test/base",
            tag="1",
            index_digest=f"sha256:{'1' * 64}",
            platform_digest=f"sha256:{'2' * 64}",
            config_digest=base.id,
            diff_ids=base.diff_ids,
            config={
                "architecture": "amd64",
                "os": "linux",
                "config": config if config is not None else _oci(base.config),
                "created": "2023-11-14T22:13:20Z",
            },
            created="2023-11-14T22:13:20Z",
        ),
        os=OsLock(id="debian", version_id="12", codename="bookworm", glibc="2.36"),
        python=python,
        wheels=tuple(sorted(wheels, key=lambda wheel: wheel.name)),
        created=CREATED,
    )
    spec = stack.spec
    return Lock(
        stack=spec.name,
        spec_sha256=lock_inputs_sha256(spec, stack.folder),
        platforms={"linux/amd64": platform},
    )


def _oci(config: Any) -> dict[str, Any]:
    wanted = ("Env", "Entrypoint", "Cmd", "Labels", "User", "WorkingDir")
    return {key: config[key] for key in wanted if config.get(key)}
