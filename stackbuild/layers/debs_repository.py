"""A flat apt repository of exactly the locked debs, so that apt itself installs these and nothing else.

The format is that of sources.list(5) for a suite that ends in a slash, and of deb-src-control's
``Packages``: the deb's own control fields and Filename, Size, SHA256.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from stackbuild.deb822 import parse_stanzas
from stackbuild.errors import BuildError, LockError
from stackbuild.lock.model import LockedDeb
from stackbuild.store.scratch import scratch_folder

LocalDeb = tuple[LockedDeb, Path]


def archive_name(deb: LockedDeb) -> str:
    """The deb's file name as apt's cache spells it: an epoch's colon is escaped."""
    return f"{deb.name}_{deb.version.replace(':', '%3a')}_{deb.architecture}.deb"


def exact_version(deb: LockedDeb) -> str:
    """What ``apt-get install`` takes for exactly this version."""
    return exact_package(deb.name, deb.version, deb.architecture)


def exact_package(name: str, version: str, architecture: str) -> str:
    """What ``apt-get install`` takes for exactly this package: ``libgomp1:amd64=14.2.0-1``."""
    return f"{name}={version}" if architecture == "all" else f"{name}:{architecture}={version}"


def require_as_locked(deb: LockedDeb, control: str) -> None:
    """Refuse a deb whose own control fields say that it is another than the lock says.

    Args:
        deb: The row of the lock; the file has its hash.
        control: The deb's control fields.

    Raises:
        LockError: ``lock-invalid``.
    """
    fields = next(iter(parse_stanzas(control)), {})
    found = tuple(fields.get(name, "") for name in ("Package", "Version", "Architecture"))
    if found != (deb.name, deb.version, deb.architecture):
        raise LockError(
            f"the lock calls {deb.name} {deb.version} for {deb.architecture} what is {found[0]} {found[1]} for {found[2]}; "
            "was it edited by hand?",
            code="lock-invalid",
            where=deb.path,
            do="Take back the lock that was committed, or lock again.",
        )


def packages_index(debs: Iterable[tuple[LockedDeb, str]]) -> str:
    """The text of ``Packages``.

    Args:
        debs: Each deb with its control fields.
    """
    return "\n".join(
        f"{control.strip()}\nFilename: ./{archive_name(deb)}\nSize: {deb.size}\nSHA256: {deb.sha256}\n"
        for deb, control in debs
    )


def read_control_fields(debs: Sequence[LocalDeb]) -> list[str]:
    """Each deb's control fields, read with this host's dpkg-deb.

    Raises:
        BuildError: ``deb-unreadable``.
        LockError: ``lock-invalid``: one is another than the lock says.
    """
    controls = []
    with scratch_folder() as scratch:
        # dpkg-deb leaves its temporary folder behind when it is interrupted.
        environment = {**os.environ, "TMPDIR": str(scratch.path)}
        for deb, path in debs:
            done = subprocess.run(
                ["dpkg-deb", "--field", str(path)], capture_output=True, check=False, env=environment
            )
            if done.returncode != 0:
                raise unreadable(deb, done.stderr.decode(errors="replace"))
            control = done.stdout.decode(errors="surrogateescape")
            require_as_locked(deb, control)
            controls.append(control)
    return controls


def unreadable(deb: LockedDeb, detail: str) -> BuildError:
    """The error for a deb that dpkg-deb cannot read."""
    return BuildError(
        f"the package {deb.name} {deb.version} cannot be read",
        code="deb-unreadable",
        detail=detail.strip(),
        do="Remove it from the store (`stackbuild store`) and build again.",
    )
