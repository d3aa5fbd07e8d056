"""The suite runs on Python 3.9 with nothing but the standard library; an older Python says what it is."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.verify_suite.support import MARK, SUITE

FILES = sorted((SUITE / "suite").rglob("*.py"))
# Judged where present, never required.
FRAMEWORKS = {"torch", "onnxruntime", "numpy"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SUITE)))
def test_every_module_is_python_3_9_and_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    foreign = {
        name
        for name in _imported(tree)
        if name not in sys.stdlib_module_names and name not in {"suite", *FRAMEWORKS}
    }
    assert foreign == set()


def test_frameworks_are_imported_inside_gates_only() -> None:
    for path in FILES:
        top = {name for node in ast.parse(path.read_text()).body for name in _imported(node, deep=False)}
        assert not top & FRAMEWORKS, path


def test_an_old_python_says_its_version_instead_of_a_syntax_error(tmp_path: Path) -> None:
    code = (
        "import sys, runpy\n"
        "sys.version_info = (3, 6, 9, 'final', 0)\n"
        f"runpy.run_path({str(SUITE / '__main__.py')!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3
    assert json.loads(done.stdout.removeprefix(MARK)) == {"event": "python-too-old", "version": "3.6.9"}


def test_the_entry_has_no_syntax_that_python_2_lacks() -> None:
    tree = ast.parse((SUITE / "__main__.py").read_text())
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]


def _imported(node: ast.AST, *, deep: bool = True) -> Iterator[str]:
    for child in ast.walk(node) if deep else [node]:
        if isinstance(child, ast.Import):
            yield from (alias.name.split(".")[0] for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0 and child.module:
            yield child.module.split(".")[0]
