"""What a lock says of its base, whatever its kind."""

from __future__ import annotations

from typing import Any

from stackbuild.lock.model import BaseLock, BootstrapBaseLock

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base_config(base: BaseLock, platform: str) -> dict[str, Any]:
    """The base's whole OCI configuration, without rootfs and history.

    Args:
        base: The locked base.
        platform: For example ``linux/amd64``.
    """
    return bootstrap_config(base, platform) if isinstance(base, BootstrapBaseLock) else base.config


def base_diff_ids(base: BaseLock) -> tuple[str, ...]:
    """The base's diff IDs, lowest first."""
    return (base.diff_id,) if isinstance(base, BootstrapBaseLock) else base.diff_ids


def bootstrap_config(base: BootstrapBaseLock, platform: str) -> dict[str, Any]:
    """The OCI configuration of a bootstrapped base, without rootfs and history, as ``ImageBaseLock.config``."""
    system, _, architecture = platform.partition("/")
    return {
        "architecture": architecture,
        "config": {"Cmd": ["/bin/bash"], "Env": [_PATH]},
        "created": base.created,
        "os": system,
    }
