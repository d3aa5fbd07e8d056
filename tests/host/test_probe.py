"""Asking a real machine: whatever a tool does, there is an answer in time."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.host.fleet import read_hosts
from stackbuild.host.probe import SystemProbe, limited


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tools that is all of PATH but the shell's own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    return folder


def _tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def test_a_tool_answers_or_is_not_there(tools: Path) -> None:
    _tool(tools, "well", "#!/bin/sh\necho out; echo err >&2\n")
    _tool(tools, "failing", "#!/bin/sh\necho no; exit 3\n")
    _tool(tools, "broken", "#!/nonexistent/interpreter\n")
    probe = SystemProbe()
    assert probe.run("absent") is None
    well, failing, broken = probe.run("well"), probe.run("failing"), probe.run("broken")
    assert well is not None
    assert (well.output, well.problem) == ("out\nerr\n", "")
    assert failing is not None
    assert (failing.output, failing.problem) == ("no\n", "ended with exit code 3")
    assert broken is not None
    assert broken.problem.startswith("does not start")


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nexec sleep 60\n",
        "#!/bin/sh\nsleep 60 &\n",  # a child keeps the pipe open
        "#!/bin/sh\nsetsid sleep 60 &\n",  # and is in no group of ours
        "#!/bin/sh\nexec yes\n",
    ],
    ids=["hangs", "leaves a child", "leaves a daemon", "prints without end"],
)
def test_a_tool_that_does_not_end_is_left_in_time(tools: Path, script: str) -> None:
    _tool(tools, "stuck", script)
    before = time.monotonic()
    answer = SystemProbe(limit=0.3).run("stuck")
    assert time.monotonic() - before < 50, "it was waited for"
    assert answer is not None
    assert answer.problem in (
        "did not answer in 0.3 s",
        "ended with exit code -13",
    )  # yes meets a closed pipe


def test_files_that_cannot_be_read_are_not_there(tmp_path: Path) -> None:
    probe = SystemProbe()
    (tmp_path / "file").write_bytes(b"\xff\xfe text")
    assert probe.read(str(tmp_path)) is None
    assert probe.read(str(tmp_path / "none")) is None
    assert probe.read(str(tmp_path / "file")) == "\ufffd\ufffd text"
    assert probe.names(str(tmp_path)) == ("file",)
    assert probe.names(str(tmp_path / "none")) == ()


def test_what_a_question_raises_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        limited(lambda: 1 // 0, 5)


def test_no_engine_is_an_answer(tools: Path) -> None:
    answer = SystemProbe().engine()
    assert (answer.info, answer.problem) == (None, "No Docker engine answers")


def test_the_command_prints_a_card_whatever_the_tools_do(
    tools: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _tool(tools, "nvcc", "#!/nonexistent/interpreter\n")
    _tool(tools, "nvidia-smi", "#!/bin/sh\nkill -SEGV $$\n")
    assert run(["host"]) == 0
    out, err = capfd.readouterr()
    assert ": tier 1 of 5, static judging" in out.splitlines()[0]
    assert "nvcc is there and does not start" in out
    assert f"Python         {sys.version.split()[0]}" in out
    assert err == ""


def test_the_json_is_the_host_file_of_check(
    tools: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "host.json"
    assert run(["host", "--format", "json", "--name", "here", "-o", str(file)]) == 0
    (host,) = read_hosts(file)
    assert (host.name, host.tier, host.python) == ("here", 1, sys.version.split()[0])
    assert host.model_dump(mode="json", by_alias=True, exclude_none=True) == json.loads(file.read_text())
    assert capfd.readouterr().out == ""


def test_a_pasted_file_becomes_a_fleet(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nodes = Path(__file__).parent / "data" / "kubernetes-nodes.json"
    file = tmp_path / "fleet.json"
    assert run(["host", "--from", str(nodes), "--format", "json", "-o", str(file)]) == 0
    assert read_hosts(file) == read_hosts(nodes)
    assert run(["host", "--from", str(nodes)]) == 0
    assert "8 ×            NVIDIA-H100-80GB-HBM3" in capfd.readouterr().out
