"""What changed in a Git working tree since a revision: the only module that runs git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stackbuild.errors import NotJudgedError, UsageError

_LIMIT = 300  # seconds; a partial clone may have to fetch
_FULL_HISTORY = "Fetch the history: `fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` of GitLab, `git fetch --unshallow`."
_ZEROS = "0" * 40


@dataclass(frozen=True)
class Changes:
    """What differs between a commit and the working tree, what is not committed included.

    Attributes:
        root: The working tree's top folder, all links resolved.
        commit: The commit compared with: the merge base of the revision and HEAD.
        paths: Every path that was added, changed or deleted, relative to ``root``; a rename is both of its names.
        deleted: Those that are gone.
    """

    root: Path
    commit: str
    paths: frozenset[str]
    deleted: frozenset[str]


def changes_since(folder: Path, revision: str) -> Changes:
    """Compare the working tree with the merge base of ``revision`` and HEAD.

    Files that are staged, not staged and untracked count. What git ignores has no state at the revision, so it is
    not seen; a fresh checkout has none of it.

    Args:
        folder: A folder of the working tree.
        revision: A commit, branch or tag, as git takes it.

    Raises:
        UsageError: ``not-a-repository``, ``unknown-revision``, ``no-common-commit``.
        NotJudgedError: ``shallow-clone``: the revision, or what it has in common with HEAD, was not fetched;
            ``git-failed``.
    """
    root = _root(folder)
    wanted = _commit(root, revision)
    head = _commit(root, "HEAD")
    base = _git(root, "merge-base", wanted, head, allowed=(1,)).strip()
    if not base:
        if _is_shallow(root):
            raise _shallow(
                f"the clone is shallow, and what HEAD and {revision} have in common was not fetched"
            )
        raise UsageError(
            f"{revision} and HEAD have no commit in common, so nothing can be compared.",
            code="no-common-commit",
            do="Name a revision of this history, or say --all.",
        )
    paths, deleted = set(), set()
    compared = _git(
        *(root, "diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-relative"),
        # What .gitmodules and diff.ignoreSubmodules leave out is in an image all the same.
        *("--ignore-submodules=none", base, "--"),
    )
    fields = iter(compared.split("\0"))
    for status in fields:
        if not status:
            break
        path = next(fields)
        paths.add(path)
        if status.startswith("D"):
            deleted.add(path)
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    # A repository within this one that is no submodule is told as one folder, with a slash at its end.
    paths.update(path.rstrip("/") for path in untracked.split("\0") if path)
    # Taken out of the index and still there: the working tree has it.
    deleted = {path for path in deleted if not os.path.lexists(root / path)}
    return Changes(root, base, frozenset(paths), frozenset(deleted))


def _root(folder: Path) -> Path:
    answer = _run(folder, "rev-parse", "--show-toplevel")
    if answer.returncode == 0:
        return Path(os.fsdecode(answer.stdout).rstrip("\n")).resolve()
    said = os.fsdecode(answer.stderr)
    if "not a git repository" in said or "must be run in a work tree" in said:
        raise UsageError(
            "This is no working tree of a Git repository, so there is nothing to compare with.",
            code="not-a-repository",
            where=str(folder),
            do="Run it in a checkout, or say --all.",
        )
    raise _failed(("rev-parse", "--show-toplevel"), said)


def _commit(root: Path, revision: str) -> str:
    answer = _run(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = os.fsdecode(answer.stdout).strip()
    # Of ^REV it gives the commit with the mark, and that is none.
    if answer.returncode == 0 and found and not found.startswith("^"):
        return found
    if revision == _ZEROS:
        raise UsageError(
            "The revision is all zeros: the first push of a branch has nothing before it.",
            code="unknown-revision",
            do="Compare with the default branch, for example origin/main, or say --all.",
        )
    if _is_shallow(root):
        raise _shallow(f"the clone is shallow and has no {revision!r}")
    raise UsageError(
        f"There is no revision {revision!r} in this repository.",
        code="unknown-revision",
        where=str(root),
        do="Fetch it (git fetch origin), or name another: git branch -a lists them.",
    )


def _is_shallow(root: Path) -> bool:
    return _git(root, "rev-parse", "--is-shallow-repository").strip() == "true"


def _shallow(what: str) -> NotJudgedError:
    return NotJudgedError(f"What changed cannot be told: {what}.", code="shallow-clone", do=_FULL_HISTORY)


def _git(root: Path, *arguments: str, allowed: Sequence[int] = ()) -> str:
    answer = _run(root, *arguments)
    if answer.returncode != 0 and answer.returncode not in allowed:
        raise _failed(arguments, os.fsdecode(answer.stderr))
    return os.fsdecode(answer.stdout)


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # Words are matched, so they must be English; and a reader takes no lock.
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=_LIMIT,
            check=False,
        )
    except FileNotFoundError:
        raise NotJudgedError(
            "git is not installed, so what changed cannot be told.",
            code="git-failed",
            do="Install git, or say --all.",
        ) from None
    except subprocess.TimeoutExpired as error:
        raise _failed(arguments, f"no answer in {_LIMIT} seconds") from error


def _failed(arguments: Sequence[str], said: str) -> NotJudgedError:
    owned = "dubious ownership" in said
    return NotJudgedError(
        f"git {arguments[0]} failed, so what changed cannot be told.",
        code="git-failed",
        detail=said.strip()[-2000:],
        do="The checkout belongs to another user: git config --global --add safe.directory PATH."
        if owned
        else "Run the same git command to see more, or say --all.",
    )
