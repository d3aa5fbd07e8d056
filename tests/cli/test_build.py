"""``stackbuild build`` where it needs no engine: what others built."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.build.stack import require_own
from stackbuild.cli.main import run
from stackbuild.errors import UsageError
from stackbuild.spec.load import load_spec

EXTERNAL = "schema: 1\nname: theirs\nexternal: registry.example/theirs:1\n"


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "stacks"
    folder.mkdir()
    (folder / "theirs.yaml").write_text(EXTERNAL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    monkeypatch.setenv("STACKBUILD_STORE", str(tmp_path / "store"))
    return folder


@pytest.mark.usefixtures("stacks")
def test_all_stacks_are_those_that_can_be_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "--all"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "theirs: not built, since others built its image\n")


def test_a_spec_that_is_not_valid_is_not_left_out(stacks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stacks / "broken.yaml").write_text("schema: 1\nname: broken\n")
    assert run(["build", "--all"]) != 0
    assert "theirs: not built" in capsys.readouterr().err


def test_an_external_stack_that_is_named_is_refused_before_anything_is_locked(stacks: Path) -> None:
    with pytest.raises(UsageError) as refused:
        require_own(load_spec(stacks / "theirs.yaml").spec)
    assert refused.value.code == "nothing-to-build"
    assert "stackbuild verify theirs" in refused.value.do
