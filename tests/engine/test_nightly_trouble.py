"""What is left and what is remembered when a night is killed, stopped, or finds no engine; external stacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.cli.progress import PlainObserver
from stackbuild.engine.docker_engine import Engine
from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import Night, Outcome, StackNight
from tests.engine.nights import ROOT, Nights, nights, one_night_project, verdicts
from tests.support.base_image import busybox_rootfs, debian_rootfs, docker_archive
from tests.support.engine_program import installed_engine
from tests.support.layer_tars import layer_tar
from tests.support.loopback import Misbehaviour
from tests.support.second_engine import running_daemon

pytestmark = pytest.mark.engine
__all__ = ["nights", "one_night_project"]  # fixtures


def remembered(nights: Nights) -> list[tuple[str, bool, Mapping[Outcome, int]]]:
    """Night, whether it was interrupted, outcomes; newest first."""
    with History(nights.history) as history:
        return [(night.id, night.interrupted, night.outcomes) for night in history.nights()]


def test_a_night_that_is_killed_leaves_nothing_to_the_next(nights: Nights) -> None:
    project = nights.project
    name = project.write("killed")
    assert nights.of(name)[0] == 0
    (first,) = remembered(nights)
    for step, number in (("load", 1), ("verify", 1)):
        assert project.killed_at(step, number, signal.SIGKILL, name, *nights.options) == -signal.SIGKILL
        assert project.left_behind() != []
        assert remembered(nights) == [first], "there is no half night"
    code, night = nights.of(name)
    assert (code, night.outcome) == (0, "unchanged")
    assert "the same as the night of" in _told(night)
    assert project.left_behind() == []
    assert len(remembered(nights)) == 2


def test_ctrl_c_ends_with_130_and_keeps_what_was_judged(nights: Nights) -> None:
    project = nights.project
    names = [project.write("a"), project.write("b")]
    assert project.killed_at("load", 2, signal.SIGINT, *names, *nights.options) == 130
    assert project.left_behind() == []
    ((_, interrupted, outcomes),) = remembered(nights)
    assert interrupted
    assert outcomes == {"unchanged": 1}
    with History(nights.history) as history:
        assert [history.last(name) is not None for name in names] == [True, False]


def test_several_at_a_time_make_one_night_and_one_ctrl_c_ends_all(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project = nights.project
    names = [project.write("c"), project.write("d")]
    broken = project.stacks / f"{project.prefix}-e.yaml"
    broken.write_text("schema: 1\nname: [\n")
    code, night = nights.run("--jobs", "2")
    assert code == 3
    assert [(stack.stack, stack.outcome) for stack in night.stacks] == [
        (names[0], "unchanged"),
        (names[1], "unchanged"),
        (broken.stem, "spec-or-lock"),
    ]
    assert len(remembered(nights)) == 1
    assert {Path(path).parts[-3] for stack in night.stacks for path in stack.reports.values()} == {night.id}

    process = subprocess.Popen(
        [sys.executable, "-m", "stackbuild", "nightly", *names, "--jobs", "2", *nights.options],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if ": load: " in line:
            process.send_signal(signal.SIGINT)
            break
    left = process.stderr.read()
    assert process.wait() == 130, left
    assert project.left_behind() == []
    assert "interrupted" in left


def test_without_an_engine_inputs_are_judged_all_the_same(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = nights.project.write("engineless")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    code, night = nights.of(name)
    assert (code, night.outcome, night.tries) == (5, "not-judged", 2)
    assert verdicts(night)["engine-unreachable"] == "ERROR"
    assert verdicts(night)["inputs-served"] == "PASS"
    assert night.drift is None


def test_an_engine_that_ends_in_the_midst_is_no_drift(
    nights: Nights, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = nights.project
    name = project.write("dying")
    with running_daemon(installed_engine()) as daemon:
        with Engine.connect(daemon.url) as engine:
            engine.load([docker_archive([busybox_rootfs()], ref="base:1")[0]])
        monkeypatch.setenv("DOCKER_HOST", daemon.url)
        told = PlainObserver.stage

        def stage(observer: PlainObserver, step: str, detail: str = "") -> None:
            told(observer, step, detail)
            if step == "verify":
                os.kill(daemon.pid, signal.SIGKILL)

        monkeypatch.setattr(PlainObserver, "stage", stage)
        code = run(["nightly", name, *nights.options, "--retries", "0", "--format", "json"])
    (night,) = Night.model_validate_json(capfd.readouterr().out).stacks
    assert (code, night.outcome, night.drift) == (5, "not-judged", None)
    assert verdicts(night)["rebuild-reproduces"] == "PASS"
    assert "engine-died" in verdicts(night)
    assert project.left_behind() == []


def test_an_external_stack_that_moves_is_drift_once(nights: Nights) -> None:
    project = nights.project
    rootfs = debian_rootfs().read_bytes()
    project.push("others", rootfs, layer_tar({"etc/motd": "one\n"}))
    name = f"{project.prefix}-external"
    (project.stacks / f"{name}.yaml").write_text(f"schema: 1\nname: {name}\nexternal: others:1\n")
    code, first = nights.of(name)
    assert (code, first.outcome, first.external) == (0, "unchanged", True), first.findings
    assert first.registry_digest.startswith("sha256:")
    assert len(first.diff_ids) == 2

    project.push("others", rootfs, layer_tar({"etc/motd": "two\n"}))
    code, night = nights.of(name)
    assert (code, night.outcome) == (6, "drift")
    assert verdicts(night)["external-moved"] == "WARN"
    assert night.drift is not None
    assert [(file.path, file.what) for file in night.drift.files] == [("/etc/motd", ("content",))]
    assert night.drift.first_layer is not None
    assert night.drift.first_layer.number == 2

    code, night = nights.of(name)
    assert (code, night.outcome, night.drift) == (0, "unchanged", None)
    assert f"{name}:nightly" in project.names()


def test_an_external_stack_whose_tag_vanished_is_judged_while_its_digest_is_served(nights: Nights) -> None:
    project = nights.project
    project.push("vanishing", debian_rootfs().read_bytes())
    name = f"{project.prefix}-vanishing"
    (project.stacks / f"{name}.yaml").write_text(f"schema: 1\nname: {name}\nexternal: vanishing:1\n")
    code, first = nights.of(name)
    assert (code, first.outcome) == (0, "unchanged"), first.findings
    project.front.misbehave("/vanishing/manifests/1$", Misbehaviour(status=404))
    code, night = nights.of(name)
    assert (code, night.outcome) == (3, "spec-or-lock")
    (finding,) = [finding for finding in night.findings if finding.verdict == "FAIL"]
    assert finding.code == "tag-removed"
    assert "the digest that it had the last time can still be fetched" in finding.summary
    assert night.diff_ids == first.diff_ids, "that one is judged"
    assert "scan.json" in night.reports
    project.front.server.behave()
    assert nights.of(name)[0] == 0, "the tag is back, and names what it named"


def _told(stack: StackNight) -> str:
    return next(finding.summary for finding in stack.findings if finding.code == "rebuild-reproduces")
