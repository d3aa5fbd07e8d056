"""The command line of a night, without an engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.cli.nightly_output import forget_reports
from stackbuild.lock.file import write_lock
from stackbuild.lock.path import lock_path
from tests.build.stacks import write_stack
from tests.lock.examples import lock


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, store_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert not store_root.exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "[no-stack-named]"),
        (["--all", "a"], "[no-stack-named]"),
        (["a", "--gpus", "many"], "[bad-device-request]"),
        (["a", "--retries", "-1"], "retries"),
        (["a", "--keep", "0"], "keep"),
    ],
)
def test_a_mistake_is_told_before_anything_is_done(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "a" in arguments:
        (tmp_path / "stacks").mkdir()
        write_stack(tmp_path / "stacks", "a")
    assert run(["nightly", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "nightly").exists()


def test_without_a_name_all_stacks_are_judged_and_written_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    for name in ("a", "b"):
        write_stack(tmp_path / "stacks", name)
    arguments = ["--page", "page", "--format", "json", "-q", "-o", "night.json"]
    assert run(["nightly", *arguments]) == 3
    assert capsys.readouterr().out == ""
    night = json.loads((tmp_path / "night.json").read_text())
    assert [(stack["stack"], stack["outcome"]) for stack in night["stacks"]] == [
        ("a", "spec-or-lock"),
        ("b", "spec-or-lock"),
    ]
    assert (tmp_path / "nightly/history.sqlite").is_file()
    assert "lock-missing" in (tmp_path / "page/nightly.xml").read_text()
    assert ">a<" in (tmp_path / "page/index.html").read_text()

    assert run(["nightly", "a", "--format", "github", "-q"]) == 3
    shown = capsys.readouterr().out
    assert shown.startswith("::error file=stacks/a.yaml,line=1,")
    assert "title=lock-missing::" in shown


@pytest.mark.parametrize(
    "arguments",
    [("check", "--all"), ("lock", "--check"), ("matrix",), ("nightly",), ("render", "gone")],
)
def test_a_link_among_the_stacks_that_leads_nowhere_is_named(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks/gone.yaml").symlink_to("../gone/gone.yaml")
    assert run([*arguments, "-q"]) == 3
    shown = capsys.readouterr()
    told = f"{shown.out}{shown.err}".lower()
    assert "this is a link to ../gone/gone.yaml, where no file is" in told
    assert "stacks/gone.yaml" in told
    assert "put back what it leads to, or remove the link." in told


def test_reports_of_old_nights_go_and_nothing_else(tmp_path: Path) -> None:
    kept = ["20261102T021500Z-0001", "20261103T021500Z-ffff"]
    for name in ("20261101T021500Z-3f2a", *kept, "mine", "20261101T021500Z-mine"):
        (tmp_path / name / "stack").mkdir(parents=True)
    forget_reports(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "store") == sorted(
        ["mine", "20261101T021500Z-mine", *kept]
    )


def test_two_nights_may_remove_the_reports_of_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("20261101T021500Z-0001", "20261102T021500Z-0002", "20261103T021500Z-0003"):
        (tmp_path / name / "stack").mkdir(parents=True)
    remove = shutil.rmtree

    def by_both(path: Path) -> None:
        remove(path)
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", by_both)
    forget_reports(tmp_path, 1)
    assert [path.name for path in tmp_path.glob("*Z-*")] == ["20261103T021500Z-0003"]


def test_a_night_that_cannot_be_remembered_is_told_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    write_stack(tmp_path / "stacks", "a")
    (tmp_path / "page").mkdir()
    (tmp_path / "page/stacks").write_text("a file where the pages of the stacks should go")
    assert run(["nightly", "a", "--page", "page", "-q"]) == 2
    shown = capsys.readouterr()
    assert "spec-or-lock" in shown.out
    assert "[output-unwritable]" in shown.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--page", "taken/page"),
        ("--reports", "taken/reports"),
        ("--work-dir", "taken/room"),
        ("--junit", "taken/night.xml"),
        ("-o", "taken/night.txt"),
        ("-o", "nights.sqlite", "--history", "nights.sqlite"),
        ("--junit", "nights.sqlite", "--history", "./nights.sqlite"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_night(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    write_stack(tmp_path / "stacks", "a")
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "nights.sqlite").write_text("")
    assert run(["nightly", "a", "-q", *arguments]) == 2
    shown = capsys.readouterr()
    assert "[output-unwritable]" in shown.err
    assert shown.out == ""
    assert (tmp_path / "nights.sqlite").read_text() == ""
    assert not (tmp_path / "nightly/history.sqlite").exists()


def test_a_night_is_told_where_its_junit_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    write_stack(tmp_path / "stacks", "a")
    assert run(["nightly", "a", "-q", "--junit", "/dev/full"]) == 4
    shown = capsys.readouterr()
    assert "spec-or-lock" in shown.out
    assert "The disk is full: /dev/full" in shown.err
    assert "[disk-full]" in shown.err


def test_a_page_that_leaves_its_reports_elsewhere_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    write_stack(tmp_path / "stacks", "a")
    assert run(["nightly", "a", "--page", "page"]) == 3
    assert "lead out of its folder" not in capsys.readouterr().err
    assert run(["nightly", "a", "--page", "page", "--reports", "kept"]) == 3
    assert "links to reports lead out of its folder, to kept" in capsys.readouterr().err


def test_lines_end_with_their_code_and_tell_what_is_wrong_with_a_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "stacks").mkdir()
    path = lock_path(write_stack(tmp_path / "stacks", "a").path)
    write_lock(path, lock())
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "e" * 64 not in line))
    assert run(["nightly", "a", "-q"]) == 3
    shown = capsys.readouterr().out
    assert "s  [lock-invalid]\n" in shown
    assert "wheels.0.sha256" in shown
