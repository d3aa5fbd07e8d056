"""The schema that editors use is current, and the starter is a spec that loads."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.cli.main import run
from stackbuild.errors import UsageError
from stackbuild.spec.load import load_spec
from stackbuild.spec.schema import SCHEMA_FILE, spec_schema
from stackbuild.spec.starter import starter_spec
from tests.spec.test_load import COMPLETE
from tests.support.json_schemas import violations

STACKS = Path(__file__).parents[2] / "stacks"


def plain(text: str) -> Any:
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text), default=str))


def test_the_committed_schema_is_current() -> None:
    """Mend with: stackbuild schema -o stackbuild/spec/stack.schema.json"""
    assert files("stackbuild.spec").joinpath(SCHEMA_FILE).read_text(encoding="utf-8") == spec_schema()


@pytest.mark.parametrize("text", [COMPLETE, *(path.read_text() for path in sorted(STACKS.glob("*.yaml")))])
def test_the_schema_accepts_good_specs(text: str) -> None:
    schema = json.loads(spec_schema())
    assert violations(plain(text), schema) == []


@pytest.mark.parametrize(
    "addition", ["framworks: {}", "pip: 1", "image: {expose: [x]}", "packages: [{a: b}]"]
)
def test_the_schema_refuses_bad_specs(addition: str) -> None:
    text = f"schema: 1\nname: demo\nbase: {{bootstrap: debian, suite: bookworm}}\n{addition}\n"
    assert violations(plain(text), json.loads(spec_schema()))


@pytest.mark.parametrize("path", sorted(STACKS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_stacks_that_ship_load_and_bear_their_files_name(path: Path) -> None:
    assert load_spec(path).spec.name == path.stem
    assert path.read_text().startswith("# yaml-language-server: $schema=")


def test_the_starter_loads_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "vision.yaml"
    path.write_text(starter_spec("vision"))
    assert load_spec(path).spec.name == "vision"


@pytest.mark.parametrize("name", ["Torch", "a/b", "../x", "", "a--b", "x" * 101, "a b", "-a", "a\n"])
def test_the_starter_refuses_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError):
        starter_spec(name)


def test_init_writes_a_spec_and_the_schema_and_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "vision"]) == 0
    spec = tmp_path / "stacks" / "vision.yaml"
    first = spec.read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=stack.schema.json"
    assert (spec.parent / "stack.schema.json").read_text() == spec_schema()
    assert load_spec(spec).spec.name == "vision"
    spec.write_text("mine")
    assert run(["init", "vision"]) == 2
    assert spec.read_text() == "mine"
    assert "not overwritten" in capsys.readouterr().err
    assert run(["init", "Vision"]) == 2
    assert "Try vision." in capsys.readouterr().err


def test_schema_prints_json_and_nothing_else(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["schema"]) == 0
    out, err = capfdbinary.readouterr()
    assert json.loads(out)["title"] == "stackbuild spec"
    assert err == b""
