"""Packages of equal version whose files are not the same: replaced under their name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from stackbuild.drift.model import FileChange, PackageChange
from stackbuild.drift.packages import Package, PackageSet

# Written by whoever installs or configures, not by the package.
_OF_THE_INSTALLER = (".pyc", "/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json", "/__pycache__")
_SITE = re.compile(r"/(?:site|dist)-packages/")
_PROGRAMS = ("/usr/bin/", "/bin/", "/usr/sbin/", "/sbin/")


def replaced_packages(
    before: PackageSet, after: PackageSet, files: Sequence[FileChange]
) -> tuple[PackageChange, ...]:
    """The packages that both sides have in one version, and with other files.

    Args:
        before: One side's packages.
        after: The other's.
        files: What became of the files.
    """
    counts = Counter(
        file.owner
        for file in files
        if file.owner and not file.noise and file.kind != "directory" and _is_its_own(file)
    )
    if not counts:
        return ()
    then = {(item.kind, _as_owner(item)) for item in before.packages}
    changes = []
    for item in sorted(after.packages, key=lambda item: item.sort_key):
        owner = _as_owner(item)
        if counts[owner] and (item.kind, owner) in then:
            number = counts[owner]
            told = f"{number:,} of its files {'differs' if number == 1 else 'differ'}"
            changes.append(
                PackageChange(
                    kind=item.kind,
                    name=item.name,
                    place=item.place,
                    change="changed",
                    before=item.version,
                    after=f"{item.version}; {told}",
                    what=("hash",),
                )
            )
    return tuple(changes)


def with_replaced(
    packages: Sequence[PackageChange], replaced: Sequence[PackageChange]
) -> tuple[PackageChange, ...]:
    """All changes, by kind and name; a package that changed otherwise is not listed twice."""
    known = {(change.kind, change.name, change.place) for change in packages}
    added = [change for change in replaced if (change.kind, change.name, change.place) not in known]
    return tuple(sorted((*packages, *added), key=lambda change: (change.kind, change.name, change.place)))


def _as_owner(item: Package) -> str:
    return f"{item.name} {item.version}"


def _is_its_own(file: FileChange) -> bool:
    """Whether it came with the package: configuration is edited, entry points are worded by the installer."""
    if file.kind == "script" and "/bin/" in file.path and not file.path.startswith(_PROGRAMS):
        return False
    if file.path.endswith(_OF_THE_INSTALLER) or file.path.startswith("/etc/"):
        return False
    # Slim images leave out documentation and translations of debs; what is there has to be the package's.
    return "content" in file.what or _SITE.search(file.path) is not None
