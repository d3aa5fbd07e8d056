"""The spec and lock that an image was built from, where both are at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stackbuild.annotate.annotations import pins_that_hold
from stackbuild.errors import LockError, SpecError
from stackbuild.lock.file import lock_sha256, read_lock
from stackbuild.lock.model import Lock
from stackbuild.lock.path import lock_path
from stackbuild.spec.load import LoadedSpec, load_spec
from stackbuild.spec.model import Platform


def lock_of_image(
    labels: Mapping[str, str],
    diff_ids: Sequence[str],
    platform: Platform,
    find_stack: Callable[[str], Path],
) -> tuple[LoadedSpec, Lock] | None:
    """The stack and lock of an image; None when its pin list does not hold, or its lock is not here.

    Args:
        labels: The image's labels.
        diff_ids: Its layers.
        platform: Its platform, for which it must be locked.
        find_stack: The spec's path of a stack's name; raises SpecError.
    """
    pins = pins_that_hold(labels, diff_ids)
    if pins is None:
        return None
    try:
        stack = load_spec(find_stack(pins.stack))
        lock = read_lock(lock_path(stack.path))
    except (
        SpecError,
        LockError,
    ):  # somebody else's stack, or one that was changed: what is here is of no use
        return None
    if pins.lock_sha256 != lock_sha256(lock) or platform not in lock.platforms:
        return None
    return stack, lock
