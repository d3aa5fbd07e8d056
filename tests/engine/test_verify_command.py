"""``stackbuild verify`` as a person calls it: exit codes, JSON on stdout alone, stacks and images."""

from __future__ import annotations

import io
import json
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from tests.support.json_schemas import violations
from tests.support.report_schemas import committed_schema

pytestmark = pytest.mark.engine

TORCH = "class version: cuda = None; hip = None\n__version__ = '2.14.1+cpu'\n"
SPEC = """\
schema: 1
name: theirs
external: {image}
python: "3.11"
frameworks:
  torch: {{version: "2.14.1", variant: {variant}}}
{more}"""


@pytest.fixture(scope="module")
def image(engine: Engine, debian_python_image: str) -> Iterator[str]:
    """Debian with Python and something that calls itself torch."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("usr/lib/python3/dist-packages/torch/__init__.py")
        entry.size = len(TORCH)
        archive.addfile(entry, io.BytesIO(TORCH.encode()))
    repository, tag = "stackbuild-test/verify-command", uuid.uuid4().hex[:12]
    with engine.container(debian_python_image, ["/"]) as container:
        container.put("/", raw.getvalue())
        engine._api.commit(container.id, repository, tag)
    yield f"{repository}:{tag}"
    engine.remove_image(f"{repository}:{tag}")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_root: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_image_passes_as_a_table_and_as_json(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", image, "--gate", "dependencies-consistent"]) == 0
    shown = capsys.readouterr()
    assert "PASS   dependencies-consistent" in shown.out
    assert "verify: interpreter" in shown.err
    assert "\x1b[" not in shown.out

    assert run(["verify", image, "--format", "json", "--gate", "dependencies-consistent"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert violations(document, json.loads(committed_schema())) == []
    assert document["cached"] is True
    assert document["complete"] is False, "a part is never complete"


def test_every_format_tells_the_same_verdict(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    for format_, words in {
        "junit": 'testcase classname="verify ',
        "markdown": "| ✅ PASS | `dependencies-consistent` |",
        "html": "<code>dependencies-consistent</code>",
        "github": "",
    }.items():
        capsys.readouterr()
        assert run(["verify", image, "-q", "--format", format_, "--gate", "dependencies-consistent"]) == 0
        shown = capsys.readouterr()
        assert words in shown.out
        assert shown.err == ""


def test_a_stack_that_is_wrong_fails_with_1_and_its_report_goes_to_a_file(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _spec(tmp_path, image, variant="cu130")
    target = tmp_path / "report.json"
    code = run(["verify", "theirs", "--gpus", "none", "--format", "json", "-o", str(target), "-q"])
    assert code == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
    found = {finding["code"]: finding for finding in json.loads(target.read_text())["findings"]}
    assert found["cpu-wheel-in-gpu-image"]["verdict"] == "FAIL"
    assert found["torch-matmul"]["verdict"] == "SKIP"


def test_a_gpu_stack_asks_for_gpus_by_itself_and_ends_with_5_where_there_are_none(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _spec(tmp_path, image, variant="cu130")
    assert run(["verify", "theirs"]) == 5
    shown = capsys.readouterr().out
    assert "ERROR  toolkit-not-installed" in shown
    assert "--gpus none" in shown
    assert "complete: false; not judged: toolkit-not-installed, python-version" in shown


def test_a_waiver_of_the_spec_holds(image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waivers = (
        "waivers:\n"
        "  - {code: torch-matmul, reason: no tensors here, owner: tests, until: 2999-01-01}\n"
        "  - {code: torch-version, match: 2.14.1+cpu, reason: wanted, owner: tests, until: 2999-01-01}\n"
    )
    _spec(tmp_path, image, variant="cpu", more=waivers)
    assert run(["verify", "theirs", "-q"]) == 1
    shown = capsys.readouterr().out
    assert "WARN   torch-matmul" in shown
    assert "waived: no tensors here (tests, until 2999-01-01)" in shown
    assert "The waiver of torch-version by tests matches no finding any more." in shown


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["verify", "stackbuild-test/none:1"], 5, "[image-missing]"),
        (["verify", "nothing.yaml"], 3, "[spec-not-found]"),
        (["verify", "x:1", "--gpus", "1,2"], 2, "[bad-device-request]"),
        (["verify"], 2, "IMAGE|STACK"),
    ],
)
def test_mistakes_are_told_on_stderr_with_their_exit_code(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert words in shown.err


def _spec(folder: Path, image: str, *, variant: str, more: str = "") -> None:
    (folder / "stacks").mkdir()
    text = SPEC.format(image=image, variant=variant, more=more)
    (folder / "stacks" / "theirs.yaml").write_text(text)
