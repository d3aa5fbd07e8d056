"""What must be as in production: the values that ``target.must-match`` takes from production's own inventory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stackbuild.errors import SpecError, UsageError
from stackbuild.lock.model import PlatformLock
from stackbuild.spec.model import StackSpec, TargetSpec
from stackbuild.verification.frozen_stack import FrozenStack, stack_of_host


def must_match(spec: StackSpec, folder: Path) -> Mapping[str, str]:
    """Field of the frozen stack → the value that it has in production.

    Args:
        spec: The spec; ``target.production`` names a host's card or a verification's report.
        folder: Folder that the path is relative to.

    Raises:
        SpecError: ``production-unreadable``, ``production-says-nothing``.
    """
    if not spec.target.must_match or spec.target.production is None:
        return {}
    path = folder / spec.target.production
    stack = _stack_of(path)
    values: dict[str, str] = {name: stack.field(name) for name in spec.target.must_match}
    unknown = [name for name, value in values.items() if not value]
    if unknown:
        raise SpecError(
            f"It says nothing of {', '.join(unknown)}, which must match.",
            code="production-says-nothing",
            where=str(path),
            do="Take the inventory again with 'stackbuild host --format json', or verify there and keep the report.",
        )
    return values


def deployment_target(target: TargetSpec) -> str:
    """What a spec is for, in one line."""
    parts = [", ".join(target.gpus), f"driver {target.driver}" if target.driver else ""]
    known = [part for part in parts if part]
    return "; ".join([*known, target.compatibility]) if known else ""


def package_sources(lock: PlatformLock) -> tuple[str, ...]:
    """Names of the indexes that wheels came from, in name order; ``debian`` and its like for debs."""
    indexes = {wheel.index for wheel in lock.wheels}
    return tuple(sorted(indexes | ({f"{lock.os.id} archive"} if lock.debs else set())))


def _stack_of(path: Path) -> FrozenStack:
    try:
        document: Any = json.loads(path.read_bytes())
        if isinstance(document, dict) and document.get("kind") == "verification":
            return FrozenStack.model_validate(document.get("frozen-stack") or {})
        from stackbuild.host.fleet import read_hosts

        return stack_of_host(read_hosts(path)[0])
    except (OSError, ValueError, ValidationError, UsageError, IndexError) as error:
        raise SpecError(
            f"target.production cannot be read: {str(error).splitlines()[0]}",
            code="production-unreadable",
            where=str(path),
            do="Name the JSON that 'stackbuild host --format json' or 'stackbuild verify --format json' writes there.",
        ) from error
