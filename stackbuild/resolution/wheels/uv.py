"""Resolution, which runs in uv, apart from everything the machine's own pip and uv are told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.lock.wheels_target import Target
from stackbuild.store.scratch import scratch_folder

Upgrade = frozenset[str] | Literal["all"]
_PATIENCE = "3600"  # seconds


@dataclass(frozen=True)
class Question:
    """What is to be resolved; all strings are requirements (PEP 508), names are normalised.

    ``preferred`` are the versions of the previous lock; ``upgrade`` says which of them do not count.
    """

    requirements: tuple[str, ...]
    target: Target
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    prereleases: tuple[str, ...] = ()
    preferred: Mapping[str, str] = field(default_factory=dict)
    upgrade: Upgrade = frozenset()


def resolve(question: Question, index_url: str) -> dict[str, str]:
    """Resolve against one index and return version by normalised name.

    Raises:
        LockError: There is no solution (code ``unsolvable``); ``detail`` is the resolver's reason.
        NotJudgedError: The resolver itself failed (code ``resolver-failed``).
    """
    with scratch_folder() as scratch:
        home = scratch.path
        arguments = _arguments(question, index_url, home)
        done = _run(arguments, home)
        if done.returncode == 0:
            pinned = (Requirement(line) for line in done.stdout.splitlines() if line and line[0] not in "#- ")
            return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pinned}
    reason = readable(done.stderr)
    if "No solution found" in done.stderr:
        raise LockError(
            f"the packages cannot all be had together for {question.target}",
            code="unsolvable",
            detail=reason,
            do="Loosen or correct one of the requirements named above; overrides replace what a package asks for.",
        )
    raise NotJudgedError(
        "the resolver failed",
        code="resolver-failed",
        detail=reason,
        do="If it names a requirement, correct it.",
    )


def default_index_url() -> str:
    """The URL of the default index, as the resolver has it built in.

    Raises:
        NotJudgedError: The resolver does not say (code ``resolver-failed``).
    """
    with scratch_folder() as scratch:
        home = scratch.path
        (home / "requirements.in").touch()
        done = _run(
            ["pip", "compile", "requirements.in", "--emit-index-url", "--no-header", "--offline", "--quiet"],
            home,
        )
    match = re.search(r"^--index-url (\S+)", done.stdout, re.MULTILINE)
    if match is None:
        raise NotJudgedError(
            "the resolver does not name its default index",
            code="resolver-failed",
            detail=readable(done.stderr),
            do="Map the index 'default' in the site file.",
        )
    return match.group(1)


def readable(text: str) -> str:
    """The resolver's explanation without its frame, its addresses and hints about its own options."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"http://127\.0\.0\.1:[0-9]+/\S*", "its index", text)
    paragraphs: list[str] = []
    for line in text.splitlines():
        if re.match(r"\s*hint:", line):
            break
        stripped = line.strip(" ×╰─▶│├").removeprefix("error: ")
        if not stripped or stripped.startswith(("No solution found", "warning:", "Using ")):
            continue
        if re.match(r"(Because|And because|we can conclude|From|error)", stripped) or not paragraphs:
            paragraphs.append(stripped)
        else:
            paragraphs[-1] += f" {stripped}"
    return "\n".join(paragraphs)


def _arguments(question: Question, index_url: str, home: Path) -> list[str]:
    previous = [f"{name}=={version}" for name, version in sorted(question.preferred.items())]
    files: dict[str, Sequence[str]] = {
        "requirements.in": question.requirements,
        "constraints.txt": question.constraints,
        "overrides.txt": question.overrides,
        "excludes.txt": question.exclude,
        "previous.txt": previous,  # uv takes the versions in an existing output file as preferences
    }
    for name, lines in files.items():
        (home / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    target = question.target
    arguments = ["pip", "compile", "requirements.in", "--output-file", "previous.txt"]
    arguments += ["--constraints", "constraints.txt", "--overrides", "overrides.txt"]
    arguments += ["--excludes", "excludes.txt"] if question.exclude else []
    arguments += ["--default-index", index_url, "--only-binary", ":all:"]
    arguments += ["--python", sys.executable, "--no-python-downloads"]
    arguments += ["--python-version", target.python, "--python-platform", target.resolver_platform]
    arguments += ["--no-header", "--no-annotate", "--no-sources"]
    for name in sorted(question.prereleases):
        arguments += ["--prerelease-package", f"{name}=allow"]
    if question.upgrade == "all":
        arguments.append("--upgrade")
    else:
        for name in sorted(question.upgrade):
            arguments += ["--upgrade-package", name]
    return arguments


def _run(arguments: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    # Asked for here, so that what needs no resolver starts without importing it.
    from uv import find_uv_bin

    command = [
        find_uv_bin(),
        *arguments,
        "--no-config",
        "--cache-dir",
        str(home / "cache"),
        "--color",
        "never",
    ]
    # Nothing of the caller's environment: no PIP_*, no UV_*, no home whose configuration would count. The
    # index is on loopback, so neither proxies nor certificates are needed.
    environment = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CONFIG_DIRS": str(home / "config"),
        "PATH": os.defpath,
        "UV_HTTP_RETRIES": "0",
        # The index waits, longer than uv would, for one behind it that limits its clients, and then says so.
        "UV_HTTP_TIMEOUT": _PATIENCE,
        "UV_HTTP_CONNECT_TIMEOUT": _PATIENCE,
        "UV_NO_PROGRESS": "1",
        "LC_ALL": "C.UTF-8",
    }
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
