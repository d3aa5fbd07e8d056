"""The wheel is whole: installed alone in a fresh environment, it works in any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        check=True,
        cwd=REPOSITORY,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def stackbuild(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, in a fresh virtual environment that holds the wheel and what it requires."""
    environment = tmp_path_factory.mktemp("fresh") / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    return environment / "bin" / "stackbuild"


def _run(command: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_carries_templates_suite_and_stacks_inside_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"stackbuild", next(top for top in tops if top.endswith(".dist-info"))}
    for shipped in ("templates/", "verify/", "stacks/torch-cu130.yaml", "stacks/demo-cpu.lock"):
        assert any(name.startswith(f"stackbuild/_shipped/{shipped}") for name in names), shipped
    assert not [name for name in names if "__pycache__" in name]


def test_a_stack_that_ships_renders_from_any_folder(stackbuild: Path, tmp_path: Path) -> None:
    done = _run(stackbuild, "render", "demo-cpu", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "/opt/venv" in done.stdout
    assert "--require-hashes" in done.stdout


def test_a_new_stack_starts_in_any_folder(stackbuild: Path, tmp_path: Path) -> None:
    done = _run(stackbuild, "init", "mine", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "name: mine" in (tmp_path / "stacks" / "mine.yaml").read_text()
