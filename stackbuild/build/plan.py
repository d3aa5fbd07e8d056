"""What decides an image, as one key: the same key means that there is nothing to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime

from stackbuild import __version__
from stackbuild.errors import LockError, UsageError
from stackbuild.lock.file import lock_sha256
from stackbuild.lock.model import Lock
from stackbuild.spec.model import Platform, StackSpec


def plan_key(
    spec: StackSpec, lock: Lock, files: str, *, platform: Platform, builder: str, created: str
) -> str:
    """The sha256 over all that decides the image.

    Args:
        spec: The stack.
        lock: Its lock.
        files: Hash of the spec's files.
        platform: For example linux/amd64.
        builder: The builder's name.
        created: RFC 3339.
    """
    parts = [
        __version__,
        spec.model_dump_json(by_alias=True),
        lock_sha256(lock),
        files,
        platform,
        builder,
        created,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def created_at(lock: Lock, platform: Platform, environ: Mapping[str, str]) -> str:
    """The image's ``created``: the newest input's time, unless SOURCE_DATE_EPOCH says otherwise.

    Args:
        lock: The stack's lock.
        platform: For example linux/amd64.
        environ: The process's environment. SOURCE_DATE_EPOCH is as reproducible-builds.org specifies it: seconds
            since 1970 in UTC.

    Raises:
        UsageError: SOURCE_DATE_EPOCH is no such number (``source-date-epoch-invalid``).
    """
    epoch = environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch:
        return lock.platforms[platform].created
    try:
        if not (epoch.isascii() and epoch.isdigit()):  # int() takes signs, spaces and underscores
            raise ValueError(epoch)
        return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"SOURCE_DATE_EPOCH is '{epoch}', which is not a number of seconds since 1970",
            code="source-date-epoch-invalid",
        ) from error


def choose_platform(spec: StackSpec, lock: Lock, engine_platform: str) -> Platform:
    """The locked platform that the engine runs.

    Raises:
        LockError: The stack is not for it (``platform-not-locked``).
    """
    for platform in spec.platforms:
        if platform == engine_platform and platform in lock.platforms:
            return platform
    raise LockError(
        f"the stack is locked for {', '.join(lock.platforms)}, and this engine runs {engine_platform}",
        code="platform-not-locked",
        where=spec.name,
        do=f"Add {engine_platform} to the spec's platforms and lock again, or build on another machine.",
    )
