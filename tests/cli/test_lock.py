"""``stackbuild lock`` where it needs no engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.lock.file import write_lock
from stackbuild.spec.load import load_spec
from stackbuild.spec.requirements_input import lock_inputs_sha256
from tests.lock.examples import bootstrap_base, deb, lock, platform_lock

SPEC = """\
schema: 1
name: example
base: {bootstrap: debian, suite: bookworm}
python: "3.11"
packages: [numpy]
"""


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "stacks"
    folder.mkdir()
    (folder / "example.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    # Nothing here may need an engine or touch a store.
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    monkeypatch.setenv("STACKBUILD_STORE", str(tmp_path / "store"))
    return folder


def _lock(stacks: Path) -> None:
    loaded = load_spec(stacks / "example.yaml")
    sha256 = lock_inputs_sha256(loaded.spec, loaded.folder)
    platforms = {"linux/amd64": platform_lock(base=bootstrap_base(deb("apt")))}
    write_lock(stacks / "example.lock", lock(spec_sha256=sha256, platforms=platforms))


def test_check_of_a_current_lock(stacks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _lock(stacks)
    assert run(["lock", "--check"]) == 0
    assert capfd.readouterr().out == "example: current\n"
    assert not (stacks.parent / "store").exists()


def test_check_of_a_stale_lock_ends_with_3_and_writes_nothing(
    stacks: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _lock(stacks)
    before = (stacks / "example.lock").read_bytes()
    (stacks / "example.yaml").write_text(SPEC.replace("[numpy]", "[numpy, scipy]"))
    assert run(["lock", "--check", "example", "--format", "json"]) == 3
    (row,) = json.loads(capfd.readouterr().out)["stacks"]
    assert row["state"] == "stale"
    assert "has changed since" in row["why"]
    assert (stacks / "example.lock").read_bytes() == before


def test_check_of_a_missing_lock(stacks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["lock", "--check"]) == 3
    assert capfd.readouterr().out == "example: missing: there is no lock yet\n"


def test_a_comment_in_the_spec_leaves_the_lock_current(stacks: Path) -> None:
    _lock(stacks)
    (stacks / "example.yaml").write_text("# a comment\n" + SPEC + "summary: Another\n")
    assert run(["lock", "--check"]) == 0


def test_a_merge_conflict_is_named(stacks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _lock(stacks)
    path = stacks / "example.lock"
    path.write_text("<<<<<<< HEAD\n" + path.read_text())
    assert run(["lock", "--check"]) == 3
    assert "[lock-merge-conflict]" in capfd.readouterr().err


def test_without_an_engine_locking_could_not_be_done(stacks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["lock"]) == 5
    assert "[engine-unreachable]" in capfd.readouterr().err
    assert not (stacks / "example.lock").exists()


def test_check_and_upgrade_exclude_each_other(stacks: Path) -> None:
    assert run(["lock", "--check", "--upgrade"]) == 2


def test_export_needs_a_current_lock(stacks: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _lock(stacks)
    (stacks / "example.yaml").write_text(SPEC.replace("numpy", "scipy"))
    assert run(["lock", "--export", "pylock", "example"]) == 3
    assert "[lock-stale]" in capfd.readouterr().err


def test_a_file_of_another_name_than_its_stack_is_told(
    stacks: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _lock(stacks)
    for suffix in (".yaml", ".lock"):
        (stacks / f"example{suffix}").rename(stacks / f"other{suffix}")
    for command in (["lock", "--check", "other"], ["check", "other"]):
        assert run(command) == 0
        told = capfd.readouterr().err
        assert "other.yaml holds the stack 'example'" in told
        assert run([*command, "-q"]) == 0
        assert "holds the stack" not in capfd.readouterr().err
