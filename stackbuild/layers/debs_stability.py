"""Do the locked debs install to the same bytes twice? Asked once, when a lock is made."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from stackbuild.errors import LockError
from stackbuild.layers.debs import DebsMaker
from stackbuild.layers.tree import FileTree
from stackbuild.store.disk import disk_full_as_error

_LISTS = "var/lib/dpkg/info/"
_SHOWN = 20


def require_stable_debs(maker: DebsMaker, tree: FileTree, first: Path) -> None:
    """Install the debs once more and compare with the layer that was made.

    Args:
        maker: Made ``first``.
        tree: The base's files.
        first: The layer's tar.

    Raises:
        LockError: ``deb-not-reproducible``, naming each path that differs and the package it belongs to.
            A path that is unique to each machine belongs into the table ``machine_unique``.
    """
    with disk_full_as_error(Path(tempfile.gettempdir())), tempfile.TemporaryFile() as second:
        maker.make(second, tree)
        second.seek(0)
        with first.open("rb") as stream:
            differing = unstable_debs(stream, second)
    if differing:
        lines = [f"/{path}: {owner}" for path, owner in list(differing.items())[:_SHOWN]]
        more = len(differing) - len(lines)
        raise LockError(
            "installing the same packages twice gave different files",
            code="deb-not-reproducible",
            detail="\n".join([*lines, *([f"and {more} more"] if more else [])]),
            do="Leave out the package that makes them, or use another version of it.",
        )


def unstable_debs(first: IO[bytes], second: IO[bytes]) -> dict[str, str]:
    """The paths in which two layers of the same debs differ, each with its package, in path order.

    Args:
        first: A layer's tar, seekable.
        second: The other.
    """
    one, owners = _contents(first)
    two, _ = _contents(second)
    paths = sorted(path for path in {*one, *two} if one.get(path) != two.get(path))
    return {path: owners.get(path, "made by a package's script") for path in paths}


def _contents(stream: IO[bytes]) -> tuple[dict[str, tuple[object, ...]], dict[str, str]]:
    """What each path holds, and which package lists it."""
    contents: dict[str, tuple[object, ...]] = {}
    owners: dict[str, str] = {}
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        for member in archive:
            path = member.name.rstrip("/")
            source = archive.extractfile(member) if member.isreg() else None
            digest = ""
            if source is not None:
                if path.startswith(_LISTS) and path.endswith(".list"):
                    listed = source.read()
                    digest = hashlib.sha256(listed).hexdigest()
                    package = path.removeprefix(_LISTS).removesuffix(".list")
                    owners |= dict.fromkeys(
                        (line.lstrip("/") for line in listed.decode(errors="replace").splitlines()), package
                    )
                else:
                    digest = hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]
            contents[path] = (
                *(member.type, member.mode, member.uid, member.gid, member.linkname, digest),
                tuple(sorted(member.pax_headers.items())),
            )
    return contents, owners
