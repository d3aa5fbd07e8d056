"""What apt's and dpkg's output says of a failure, for a person who has to act on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FAILED = re.compile(r"^dpkg: error processing (?:package|archive) (\S+)")
_BEFORE = 12  # lines shown before dpkg's own, since there the package's script says why
_AFTER = 1
_LAST = 15
_WIDTH = 300


@dataclass(frozen=True)
class InstallFailure:
    """Why packages were not installed.

    Attributes:
        package: The first package that failed; empty when the output names none.
        detail: The lines that say why.
    """

    package: str
    detail: str


def install_failure(output: str) -> InstallFailure:
    """Find the package that failed and what it said; without one, the output's last lines.

    Args:
        output: Everything apt or dpkg wrote.
    """
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    lines = [line if len(line) <= _WIDTH else line[:_WIDTH] + " …" for line in lines]
    for number, line in enumerate(lines):
        if found := _FAILED.match(line):
            package = found[1].rpartition("/")[2]
            return InstallFailure(package, "\n".join(lines[max(0, number - _BEFORE) : number + _AFTER + 1]))
    return InstallFailure("", "\n".join(lines[-_LAST:]))
