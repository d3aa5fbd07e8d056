"""An empty store for one rebuild, removed at its end; what a killed night left is removed at the next start."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stackbuild.output_file import writing
from stackbuild.store.disk import disk_full_as_error
from stackbuild.store.store import Store

_PREFIX = "rebuild-"
_GUARD = ".stackbuild-rebuilds.lock"


@contextmanager
def clean_store(area: Path) -> Iterator[Store]:
    """Make an empty store in a folder of its own and remove that folder, however the block ends.

    It asks no shared layer cache: what comes out of it was fetched and made anew.

    Args:
        area: As for :func:`owned_folder`.

    Raises:
        BuildError: ``disk-full``.
        UsageError: ``output-unwritable``.
    """
    with owned_folder(area) as folder:
        yield Store(folder)


@contextmanager
def owned_folder(area: Path) -> Iterator[Path]:
    """Make an empty folder that goes with the block, however that ends; what a kill leaves a sweep removes.

    Args:
        area: The folder it is made in; made when missing. Several nights may share it.

    Raises:
        BuildError: ``disk-full``.
        UsageError: ``output-unwritable``.
    """
    with disk_full_as_error(area), writing(area):
        area.mkdir(parents=True, exist_ok=True)
        with _guarded(area):
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=area))
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # tells a sweep that somebody uses it
    try:
        yield folder
    finally:
        try:
            _remove(folder)
        except KeyboardInterrupt:
            _remove(folder)
            raise
        finally:
            os.close(descriptor)


def sweep_clean_stores(area: Path) -> list[str]:
    """Remove the folders of killed nights, and return their names.

    Args:
        area: As for :func:`owned_folder`; may be missing.
    """
    if not area.is_dir():
        return []
    removed = []
    with _guarded(area):
        for folder in sorted(area.glob(f"{_PREFIX}*")):
            try:
                descriptor = os.open(folder, os.O_RDONLY)
            except FileNotFoundError:  # its night has just ended
                continue
            try:
                with suppress(BlockingIOError):
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)
                    removed.append(folder.name)
            finally:
                os.close(descriptor)
    return removed


@contextmanager
def _guarded(area: Path) -> Iterator[None]:
    """Between making a folder and locking it no sweep may look at it."""
    with (area / _GUARD).open("a", encoding="ascii") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
