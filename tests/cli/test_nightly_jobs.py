"""A night of several stacks at a time: each a process, and yet one night."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stackbuild.cli import nightly_jobs
from stackbuild.cli.main import run
from stackbuild.cli.nightly_jobs import night_in_processes
from stackbuild.cli.processes import Task
from stackbuild.findings import Verdict
from stackbuild.nightly.model import Night
from stackbuild.progress import SilentObserver
from stackbuild.store.shared_outages import OUTAGES
from tests.nightly.nights import finding, night, result
from tests.support.loopback import LoopbackServer, Misbehaviour, Response

STARTED = datetime(2026, 11, 30, 2, 15, tzinfo=UTC)


def test_a_server_that_is_down_costs_one_night_its_tries_once(
    tmp_path: Path, store_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    names = ["a", "b", "c"]
    (tmp_path / "stacks").mkdir()
    for name in names:
        (tmp_path / f"stacks/{name}.yaml").write_text(f"schema: 1\nname: {name}\nexternal: {name}:1\n")
    with LoopbackServer(lambda request: Response()) as registry:
        registry.misbehave("/", Misbehaviour(status=500))
        (tmp_path / "stackbuild.toml").write_text(f'[registries]\n"docker.io" = "{registry.url}"\n')
        code = run(["nightly", "--jobs", "2", "--retries", "0", "--format", "json"])
        asked = {name: len(registry.requested(f"/library/{name}/")) for name in names}
    stacks = json.loads(capsys.readouterr().out)["stacks"]
    assert code == 5
    assert [(stack["stack"], stack["outcome"]) for stack in stacks] == [
        (name, "not-judged") for name in names
    ]
    codes = [{finding["code"] for finding in stack["findings"]} for stack in stacks]
    assert all("registry-unreachable" in found for found in codes)
    assert asked["a"] + asked["b"] > 0, asked
    assert asked["c"] == 0, "a and b had found out"
    assert list((store_root / "rebuilds").glob("rebuild-*")) == []


class _Processes:
    """Stands for the processes: what each prints and ends with, by stack, one after the other."""

    def __init__(self, **said: list[tuple[Night | None, int]]) -> None:
        self._said = said
        self.begun: list[str] = []
        self.outages: list[str] = []

    def run(
        self,
        tasks: Sequence[Task],
        _jobs: int,
        done: Callable[[Task, str, int], None],
        *,
        stop: Callable[[], bool],
    ) -> None:
        for task in tasks:
            if stop():
                return
            self.begun.append(task.name)
            arguments = list(task.arguments)
            file = Path(arguments[arguments.index("--shared") + 1]) / OUTAGES
            self.outages.append(file.read_text())
            file.write_text('{"down.example": {"failures": 3, "counted": 1.0, "reason": "refused"}}')
            said, code = self._said[task.name].pop(0)
            if code == 130:
                raise KeyboardInterrupt
            done(task, "" if said is None else said.model_dump_json(by_alias=True), code)


def _night(
    processes: _Processes, monkeypatch: pytest.MonkeyPatch, area: Path, *names: str, retries: int = 1
) -> Night:
    monkeypatch.setattr(nightly_jobs, "run_processes", processes.run)
    return night_in_processes(
        [area / f"{name}.yaml" for name in names],
        2,
        ["-q"],
        id_="x",
        started=STARTED,
        retries=retries,
        pause=0,
        area=area,
        observer=SilentObserver(),
    )


def test_what_infrastructure_kept_from_being_judged_is_tried_again_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = result("a", outcome="not-judged", findings=(finding("index-unreachable", Verdict.ERROR),))
    processes = _Processes(
        a=[(night(down, kept_from=("a",)), 5), (night(result("a")), 0)],
        b=[(night(result("b")), 0)],
        c=[(None, -9), (None, -9)],
    )
    found = _night(processes, monkeypatch, tmp_path, "a", "b", "c")
    assert processes.begun == ["a", "b", "c", "a", "c"]
    assert [(stack.stack, stack.outcome, stack.tries) for stack in found.stacks] == [
        ("a", "unchanged", 2),
        ("b", "unchanged", 1),
        ("c", "not-judged", 2),
    ]
    assert found.kept_from == ("c",)
    empty = [json.loads(known or "{}") == {} for known in processes.outages]
    assert empty == [True, False, False, True, False], (
        "what is down is forgotten before a further round alone"
    )
    assert list(tmp_path.glob("rebuild-*")) == []


def test_a_name_that_another_stack_has_is_told_of_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("schema: 1\nname: a\nexternal: others:1\n")
    processes = _Processes(a=[(night(result("a")), 0)])
    found = _night(processes, monkeypatch, tmp_path, "a", "b")
    assert processes.begun == ["a"]
    assert [(stack.stack, stack.outcome) for stack in found.stacks] == [
        ("a", "unchanged"),
        ("b", "spec-or-lock"),
    ]
    assert [finding.code for finding in found.stacks[1].findings] == ["stack-name-twice"]


def test_a_full_disk_ends_the_night_and_its_further_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = result("a", outcome="build-failed", findings=(finding("disk-full", Verdict.FAIL),))
    processes = _Processes(a=[(night(full, kept_from=("a",)), 4)])
    found = _night(processes, monkeypatch, tmp_path, "a", "b")
    assert processes.begun == ["a"]
    assert [(stack.stack, stack.outcome) for stack in found.stacks] == [
        ("a", "build-failed"),
        ("b", "not-judged"),
    ]


def test_an_interrupt_of_a_further_round_keeps_what_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = result("a", outcome="not-judged", findings=(finding("index-unreachable", Verdict.ERROR),))
    processes = _Processes(a=[(night(down, kept_from=("a",)), 5), (None, 130)], b=[(night(result("b")), 0)])
    found = _night(processes, monkeypatch, tmp_path, "a", "b")
    assert found.interrupted
    assert [(stack.stack, stack.outcome) for stack in found.stacks] == [
        ("a", "not-judged"),
        ("b", "unchanged"),
    ]
