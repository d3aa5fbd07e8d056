"""Every reported failure is a test, and what ``coverage.yaml`` says of it exists."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.gates.pages import gate_pages

ROOT = Path(__file__).parents[2]
COVERAGE: dict[str, dict[str, Any]] = YAML(typ="safe").load(Path(__file__).parent / "coverage.yaml")
# The reported failures that must never come back, by kind: a host and driver, b wheels and channels, c ONNX Runtime,
# d architectures, e base images, f the Docker SDK, g SBOM, h rebuilds, i containers, j libraries in the way.
KINDS = {
    "a": ("A01", "A03", "A05"),
    "b": ("B01", "B03", "B05", "B06", "B08", "B09"),
    "c": ("C01", "C02", "C04", "C06"),
    "d": ("D01", "D03", "D04"),
    "e": ("E01", "E02", "E04", "E07"),
    "f": ("F01", "F03", "F04", "F05"),
    "g": ("G01", "G03", "G04", "G05"),
    "h": ("H01", "H03", "H05"),
    "i": ("I01", "I03", "I05", "I07"),
    "j": ("J01", "J03"),
}
IDS = [case for cases in KINDS.values() for case in cases]


@cache
def functions(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def data_id(file: Path) -> str:
    """The id in a data file: YAML's ``id``, and what JSON's ``case`` begins with."""
    loaded = YAML(typ="safe").load(file)
    return str(loaded.get("id") or loaded.get("case")).partition(",")[0]


def test_every_case_is_there() -> None:
    assert sorted(COVERAGE) == sorted(IDS)


@pytest.mark.parametrize("case", IDS)
def test_its_tests_exist(case: str) -> None:
    for place in COVERAGE[case]["tests"]:
        name, _, function = place.partition("::")
        file = ROOT / name
        assert file.is_file(), place
        if file.suffix == ".py":
            assert function in functions(file), place
        else:
            assert data_id(file) == case, place


@pytest.mark.parametrize("case", IDS)
def test_each_code_has_a_page_and_is_in_a_test(case: str) -> None:
    texts = [
        (ROOT / place.partition("::")[0]).read_text(encoding="utf-8") for place in COVERAGE[case]["tests"]
    ]
    for code in COVERAGE[case]["codes"]:
        assert code in gate_pages(), code
        assert any(code in text for text in texts), code


def test_every_data_file_is_listed() -> None:
    listed = {place for entry in COVERAGE.values() for place in entry["tests"]}
    folders = [ROOT / "tests" / "cases" / name for name in ("data", "run", "registry")]
    files = [file for folder in folders for file in folder.glob("*.yaml")]
    files += (ROOT / "tests" / "scan" / "cases").glob("*.json")
    known = [file.relative_to(ROOT).as_posix() for file in files]
    assert [name for name in known if name not in listed] == []
