"""A stack's image in a real engine: its SBOM as others read it, and the spec that is drafted from it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from stackbuild.spec.load import load_spec
from tests.engine.publishing import Project
from tests.support.registry import Registry
from tests.support.syft import syft

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def built(
    engine: Engine, registry: Registry, debian_python_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    project = Project(engine, registry, tmp_path_factory.mktemp("sbom"), debian_python_image)
    before = Path.cwd()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in project.environment().items():
            patch.setenv(name, value)
        patch.chdir(project.folder)
        project.build("1")
        yield project
    project.clean()
    assert Path.cwd() == before


def test_engine_and_archive_give_the_same_document_and_another_tool_reads_it(built: Project) -> None:
    image = f"{built.name}:latest"
    archive = built.folder / "saved.tar"
    with archive.open("wb") as stream:
        for chunk in built.engine.save(image):
            stream.write(chunk)
    assert run(["sbom", image, "--scan", "-q", "-o", "engine.json"]) == 0
    assert run(["sbom", str(archive), "-q", "-o", "archive.json"]) == 0
    document = (built.folder / "engine.json").read_bytes()
    assert (built.folder / "archive.json").read_bytes() == document
    ours = {
        component["purl"].partition("?")[0].partition("#")[0]
        for component in json.loads(document)["components"]
        if "purl" in component
    }
    assert "pkg:pypi/leaf@1" in ours
    assert {purl.partition("?")[0] for purl in _as_syft_reads(built.folder / "engine.json")} == ours


def test_where_the_lock_is_at_hand_the_document_comes_from_it(built: Project) -> None:
    assert run(["sbom", f"{built.name}:latest", "-q", "-o", "lock.json"]) == 0
    components = json.loads((built.folder / "lock.json").read_bytes())["components"]
    (leaf,) = [component for component in components if component["name"] == "leaf"]
    assert leaf["hashes"], "only the lock knows the wheel's hash"


def test_an_imported_image_has_the_packages_of_its_spec(
    built: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    original = load_spec(built.stacks / f"{built.name}.yaml").spec
    assert run(["import", f"{built.name}:latest", "-q", "-o", "stacks/imported.yaml"]) == 0
    imported = load_spec(built.stacks / "imported.yaml").spec
    assert imported.packages == original.packages
    assert (imported.name, imported.python, imported.apt) == (original.name, original.python, original.apt)
    assert (imported.frameworks, imported.image, imported.pip) == (
        original.frameworks, original.image, original.pip,
    )  # fmt: skip
    capfd.readouterr()
    assert run(["import", f"{built.name}:latest", "-q", "-o", "stacks/imported.yaml"]) == 2
    assert "spec-exists" in capfd.readouterr().err


def _as_syft_reads(path: Path) -> set[str]:
    answer = subprocess.run(
        [str(syft()), "convert", str(path), "-o", "syft-json"],
        check=True,
        capture_output=True,
        env={**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"},
    )
    return {artifact["purl"] for artifact in json.loads(answer.stdout)["artifacts"] if artifact["purl"]}
