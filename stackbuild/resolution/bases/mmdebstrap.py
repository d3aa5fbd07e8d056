"""What mmdebstrap itself says: which repositories it would use for a suite."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import replace

from stackbuild.errors import NotJudgedError
from stackbuild.layers.bootstrap import mmdebstrap_program
from stackbuild.resolution.debs.apt_sources import AptRepository, parse_sources

_MARK = "stackbuild-sources"
# Runs before anything is fetched: print what mmdebstrap wrote, and stop it there.
_HOOK = f"""
echo {_MARK} one-line; cat "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*.list 2>/dev/null
echo {_MARK} deb822; cat "$1"/etc/apt/sources.list.d/*.sources 2>/dev/null
echo {_MARK} end; exit 1
"""
_LIMIT = 120.0  # seconds


def mmdebstrap_repositories(suite: str) -> tuple[AptRepository, ...]:
    """The repositories that mmdebstrap would bootstrap a suite from, with the keys of this host.

    Args:
        suite: For example ``bookworm``.

    Raises:
        NotJudgedError: ``mmdebstrap-missing``, ``bootstrap-not-permitted``.
    """
    command = [
        mmdebstrap_program(),
        "--variant=minbase",
        "--format=null",
        f"--setup-hook={_HOOK}",
        suite,
        "/dev/null",
    ]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # where a hook's output goes differs between versions
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotJudgedError(
            f"mmdebstrap did not answer within {_LIMIT:.0f} seconds",
            code="bootstrap-not-permitted",
            do="Run `mmdebstrap --simulate` for the suite and see where it waits.",
        ) from error
    found = parse_answer(done.stdout)
    if not found:
        raise NotJudgedError(
            f"mmdebstrap does not say where it would take the suite {suite} from",
            code="bootstrap-not-permitted",
            detail="\n".join(done.stdout.splitlines()[-8:]),
            do="Run with sudo, or: apt-get install uidmap, and give the user a range in /etc/subuid.",
        )
    return found


def without_host_options(repositories: Iterable[AptRepository]) -> tuple[AptRepository, ...]:
    """The repositories as an image names them: without the paths of this host's keys."""
    return tuple(replace(repository, options=()) for repository in repositories)


def parse_answer(output: str) -> tuple[AptRepository, ...]:
    """Read what the hook printed."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in output.splitlines():
        if line.startswith(f"{_MARK} "):
            current = sections.setdefault(line.partition(" ")[2], [])
        else:
            current.append(line)
    return (
        *parse_sources("\n".join(sections.get("one-line", ())), deb822=False),
        *parse_sources("\n".join(sections.get("deb822", ())), deb822=True),
    )
