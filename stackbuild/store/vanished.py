"""A store that somebody removed while it was used: safe to delete, but not under a run."""

from __future__ import annotations

from collections.abc import Iterable
from os import fsdecode
from pathlib import Path

from stackbuild.errors import NotJudgedError


def store_vanished(error: BaseException, roots: Iterable[Path]) -> NotJudgedError | None:
    """The failure that an error stands for when it misses something in a store; None for any other error.

    Args:
        error: What was raised.
        roots: Folders of the stores that were used.

    Returns:
        One of code ``store-vanished``.
    """
    if not isinstance(error, FileNotFoundError) or not isinstance(error.filename, (str, bytes)):
        return None
    missed = Path(fsdecode(error.filename))
    root = next((root for root in roots if missed.is_relative_to(root)), None)
    if root is None:
        return None
    below = [path for path in (*reversed(missed.parents), missed) if path.is_relative_to(root)]
    gone = next((path for path in below if not path.exists()), missed)
    return NotJudgedError(
        f"{'the store' if gone == root else 'a part of the store'} was removed while it was used",
        code="store-vanished",
        where=str(gone),
        do="Run the same command again: what is missing is fetched and made anew. To empty the store, run"
        " `stackbuild store evict`, which refuses while a stack is locked, built or judged.",
    )
