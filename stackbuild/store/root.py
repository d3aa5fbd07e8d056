"""Where a user's store is, and whether it can be one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stackbuild.errors import UsageError


def default_root(environ: Mapping[str, str] | None = None) -> Path:
    """Where the store is: ``$STACKBUILD_STORE``, else ``stackbuild`` in the user's cache folder."""
    environ = os.environ if environ is None else environ
    if environ.get("STACKBUILD_STORE"):
        return Path(environ["STACKBUILD_STORE"]).expanduser().absolute()
    cache = environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification 0.8: a relative path is to be ignored.
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "stackbuild"


@contextmanager
def usable(root: Path) -> Iterator[None]:
    """Say of a folder that cannot be made or written that it is no store.

    Args:
        root: The store's.

    Raises:
        UsageError: ``store-unusable``.
    """
    try:
        yield
    except (PermissionError, FileNotFoundError, NotADirectoryError, FileExistsError) as error:
        raise UsageError(
            f"the store cannot be used: {error.strerror}",
            code="store-unusable",
            where=str(root),
            do="Name another folder with STACKBUILD_STORE or `store` in the site file.",
        ) from error
