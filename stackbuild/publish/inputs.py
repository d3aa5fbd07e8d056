"""What decides a stack's image, hashed before anything is fetched or built."""

from __future__ import annotations

from collections.abc import Mapping

from stackbuild.build.plan import created_at, plan_key
from stackbuild.layers.files import files_sha256
from stackbuild.lock.model import Lock
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import Platform


def stack_inputs(
    stack: LoadedSpec,
    lock: Lock,
    platform: Platform,
    environ: Mapping[str, str],
    *,
    builder: str = "assemble",
) -> str:
    """The sha256, in hex, over all that decides a stack's image for one platform.

    Args:
        stack: The spec.
        lock: Its lock, current.
        platform: One of the lock's.
        environ: The process's environment, for SOURCE_DATE_EPOCH.
        builder: The builder's name; each has inputs of its own.

    Raises:
        UsageError: ``source-date-epoch-invalid``.
        SpecError: A file of the spec is missing.
    """
    return plan_key(
        stack.spec,
        lock,
        files_sha256(stack.spec, stack.folder),
        platform=platform,
        builder=builder,
        created=created_at(lock, platform, environ),
    )
