"""The scripts of the schedules, run in their order against a real registry: a stack is built, judged and promoted."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.cli.main import run
from tests.engine.publishing import ROOT, Project

pytestmark = pytest.mark.engine


@pytest.fixture
def shell(project: Project, tmp_path: Path) -> Iterator[Shell]:
    yield Shell(project, tmp_path)
    project.clean()


class Shell:
    """Runs scripts as a service's runner does, with ``stackbuild`` on the path."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        program = folder / "bin" / "stackbuild"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stackbuild "$@"\n')
        program.chmod(0o755)
        self._path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"

    def run(self, script: str, **variables: str) -> None:
        """Run a script in the project's folder; it must end well."""
        environment = {
            **os.environ,
            **self.project.environment(),
            "PATH": self._path,
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
            "IMAGES": self.project.repository.rpartition("/")[0],
            **variables,
        }
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=self.project.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


def matrix(capfd: pytest.CaptureFixture[str], service: str) -> str:
    capfd.readouterr()
    assert run(["matrix", "--all", "--format", service]) == 0
    return capfd.readouterr().out


def test_gitlab(project: Project, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
    project.write("1.1")
    document = YAML(typ="safe").load(matrix(capfd, "gitlab"))
    variables: dict[str, str] = {}
    for stage in ("build", "judge", "promote"):
        for job in document.values():
            if isinstance(job, dict) and job.get("stage") == stage:
                shell.run("\n".join(job["script"]), **variables)
                report = job.get("artifacts", {}).get("reports", {}).get("dotenv")
                if report:  # GitLab hands these variables to the jobs that need this one
                    lines = (project.folder / report).read_text().splitlines()
                    variables |= dict(line.split("=", 1) for line in lines)
    (digest,) = variables.values()
    assert project.digest("latest") == digest


def test_github(project: Project, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
    project.write("1.2")
    workflow = YAML(typ="safe").load(ROOT / "docs" / "schedules" / "github-actions.yml")
    outputs = {
        name: json.loads(value)
        for name, _, value in (line.partition("=") for line in matrix(capfd, "github").splitlines())
    }
    steps = {
        (kind, step["name"]): step["run"]
        for kind, job in workflow["jobs"].items()
        for step in job["steps"]
        if "name" in step and "run" in step
    }

    def variables(kind: str, row: Mapping[str, Any]) -> dict[str, str]:
        """The job's ``env``, with the row of the matrix in it."""
        return {
            name: str(row[value.removeprefix("${{ matrix.").removesuffix(" }}")])
            for name, value in workflow["jobs"][kind]["env"].items()
        }

    (build,), (judge,), (promote,) = (outputs[kind]["include"] for kind in ("build", "judge", "promote"))
    for name in ("Build", "Stage"):
        shell.run(steps["build", name], **variables("build", build))
    staged = project.folder / "staged" / f"staged-{build['id']}"
    staged.mkdir(parents=True)
    (staged / "digest").write_text((project.folder / "digest").read_text())
    shell.run(steps["judge", "Verify"], **variables("judge", judge))
    before = project.digest("latest")
    shell.run(steps["promote", "Promote"], **variables("promote", promote))
    after = project.digest("latest")
    assert after == (staged / "digest").read_text().strip()
    assert after != before
