"""Where a user's store is, and whether it can be one."""

from __future__ import annotations

import errno
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
        raise _unusable(root, error) from error
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        raise _unusable(root, error) from error


@contextmanager
def writable(root: Path) -> Iterator[None]:
    """Say of a store that may be read alone that it is so; what is missing in it is for others to tell.

    Args:
        root: The store's.

    Raises:
        UsageError: ``store-unusable``.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise _unusable(root, error) from error


def _unusable(root: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the store cannot be used: {error.strerror}",
        code="store-unusable",
        where=str(root),
        do="Name another folder with STACKBUILD_STORE or `store` in the site file.",
    )
