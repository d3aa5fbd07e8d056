"""``stackbuild verify`` without an engine: what excludes what, and an environment in every format."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from stackbuild.cli.main import run
from stackbuild.verification import local

SPEC = """\
schema: 1
name: theirs
external: example.org/theirs:1
python: "3.4"
frameworks:
  torch: {version: "2.14.1", variant: cpu}
"""


@pytest.fixture(autouse=True)
def _without_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks/theirs.yaml").write_text(SPEC)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x:1", "--emit", "compose", "--local"], "--local and --emit exclude each other"),
        (["x:1", "--emit", "compose", "--attach"], "--emit and --attach exclude each other"),
        (["x:1", "--python", "/usr/bin/python3"], "--python is for --local"),
        (["theirs", "--image", "x:1"], "--image is for --emit and --collect"),
        (["x:1", "--local"], "it takes a STACK, not an image"),
        (["--emit", "compose"], "IMAGE|STACK is missing"),
        ([], "IMAGE|STACK is missing"),
        (["x:1", "--emit", "helm"], "helm"),
        (["x:1", "--collect", "nothing.txt"], "nothing.txt"),
        (["--local", "--gate", "no-such"], "no-such"),
        (["--local", "--python", "nothing"], "This interpreter does not start"),
    ],
)
def test_a_mistake_is_told_with_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


@pytest.fixture
def _measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the suite run for the first command only: what it measured is judged and told again for the others."""
    run_suite, measured = local._run, []

    def once(*arguments: Any) -> Any:
        if not measured:
            measured.append(run_suite(*arguments))
        return measured[0]

    monkeypatch.setattr(local, "_run", once)


@pytest.mark.usefixtures("_measured_once")
def test_an_environment_is_judged_against_a_stack_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for format_, words in {
        "table": "FAIL   python-version",
        "junit": 'type="python-version">',
        "markdown": "| ❌ FAIL | `python-version` |",
        "html": "<!DOCTYPE html>",
        "github": "::error file=stacks/theirs.yaml,line=4,col=9,title=python-version::",
    }.items():
        capsys.readouterr()
        assert run(["verify", "theirs", "--local", "-q", "--format", format_]) == 1
        assert words in capsys.readouterr().out, format_
    target = tmp_path / "out" / "report.json"
    assert run(["verify", "theirs", "--local", "-q", "--format", "json", "-o", str(target)]) == 1
    report = json.loads(target.read_text())
    assert (report["ran"], report["image"]["id"]) == ("local", "")
    assert report["frozen-stack"]["python"].startswith("CPython 3.")


def test_an_environment_alone_passes_or_fails_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--local", "-q", "--gate", "shm-too-small"]) == 0
    shown = capsys.readouterr().out
    assert "an environment, not an image" in shown
    assert "complete: false" in shown, "a part is never complete"


def test_what_differs_from_production_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = "target: {production: production.json, must-match: [kernel, architecture]}\n"
    (tmp_path / "stacks/theirs.yaml").write_text(SPEC + target)
    card = {"schema": 1, "kernel": "2.4.0", "machine": platform.machine()}
    (tmp_path / "stacks/production.json").write_text(json.dumps(card))
    assert run(["verify", "theirs", "--local", "-q", "--gate", "stack-differs"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"FAIL stack-differs kernel is {platform.release()} here and 2.4.0 in production" in shown
    assert "PASS stack-differs architecture is as in production" in shown


@pytest.mark.parametrize("format_", ["junit", "markdown"])
def test_check_writes_for_ci_as_well(format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "torch-cu130", "--driver", "470.1", "--gpu", "H100", "--format", format_]) == 1
    out = capsys.readouterr().out
    if format_ == "junit":
        root = ElementTree.fromstring(out)
        assert [suite.get("name") for suite in root] == ["torch-cu130", "torch-cu130 on driver 470.1, H100"]
        assert "driver-too-old" in {failure.get("type") for failure in root.iter("failure")}
    else:
        assert out.startswith("### ❌ FAIL: check torch-cu130\n")
        assert "| ❌ FAIL | `driver-too-old` | torch-cu130 on driver 470.1, H100 |" in out
