"""A Git repository with stacks, made for one test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

PLAIN = 'schema: 1\nname: {name}\nbase: {{bootstrap: debian, suite: bookworm}}\npython: "3.11"\n'
GPU = (
    "schema: 1\nname: {name}\nbase: {{image: nvidia/cuda, tag: 13.0.1-base-ubuntu24.04}}\n"
    'python: "3.12"\nframeworks:\n  torch: {{version: "2.9.1", variant: cu130}}\n'
)


class GitRepository:
    """A working tree in which nothing of the machine's Git configuration holds.

    Args:
        root: Its folder, made when missing.
        like: Another, of which this is to be a copy.
    """

    def __init__(self, root: Path, *, like: GitRepository | None = None) -> None:
        self.root = root
        if like is not None:
            shutil.copytree(like.root, root, symlinks=True)
            return
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch", "main", "--template", "")

    def git(self, *arguments: str) -> str:
        """Run git and return what it printed."""
        environment = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **{f"GIT_{who}_NAME": "Test" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "test@example.org" for who in ("AUTHOR", "COMMITTER")},
        }
        done = subprocess.run(
            ["git", "-C", str(self.root), "-c", "maintenance.auto=false", *arguments],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, whose folders are made."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def commit(self, files: Mapping[str, str] | None = None) -> str:
        """Commit all there is, with these files written before, and return the commit."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")
