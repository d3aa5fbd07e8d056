"""The gates that need no framework, on this interpreter and on made-up distributions."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

import pytest


def test_interpreter_tells_what_runs_it() -> None:
    gate: Any = importlib.import_module("suite.gates.interpreter")
    measured = gate.measure({})
    assert measured["python"] == platform.python_version()
    assert measured["executable"] == sys.executable
    assert measured["uid"] == os.getuid()
    assert measured["glibc"] == platform.libc_ver()[1]


def test_distributions_list_versions_requirements_and_missing_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, "Some_Package", "1.0+cpu", files={"some_package/__init__.py": ""}, missing=["gone.py"])
    gate: Any = importlib.import_module("suite.gates.distributions")  # while the path still leads to it
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    measured = gate.measure({})
    assert measured["distributions"] == [
        {
            "name": "some-package",
            "version": "1.0+cpu",
            "requires": ["numpy>=1"],
            "location": str(tmp_path),
            "missing_files": 1,
            "missing": ["gone.py"],
        }
    ]
    assert measured["markers"]["python_full_version"] == platform.python_version()


def test_imports_try_the_distributions_own_modules_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "whole/__init__.py": "",
        "whole/part.py": "raise RuntimeError('not a top-level module')",
        "single.py": "",
        "_private.py": "raise RuntimeError('private')",
        "tests/__init__.py": "raise RuntimeError('tests shipped by accident')",
        "data/file.txt": "",
    }
    _install(tmp_path, "thing", "2", files=files)
    monkeypatch.syspath_prepend(str(tmp_path))
    gate: Any = importlib.import_module("suite.gates.imports")
    assert set(gate.measure({"distribution": "thing"})["modules"]) == {"single", "whole"}


def test_placement_counts_nodes_by_provider_and_operator() -> None:
    gate: Any = importlib.import_module("suite.gates.onnxruntime_gates")
    kernel = {"cat": "Node", "args": {"op_name": "Gemm", "provider": "CUDAExecutionProvider"}}
    events = [
        {"cat": "Session", "name": "model_run", "args": {}},
        {**kernel, "name": "first_kernel_time"},
        {**kernel, "name": "second_kernel_time"},
        {**kernel, "name": "first_fence_before"},
        {
            "cat": "Node",
            "name": "shape_kernel_time",
            "args": {"op_name": "Shape", "provider": "CPUExecutionProvider"},
        },
    ]
    assert gate.placement(events) == {
        "CUDAExecutionProvider": {"Gemm": 2},
        "CPUExecutionProvider": {"Shape": 1},
    }


def _install(
    folder: Path, name: str, version: str, *, files: dict[str, str], missing: list[str] | None = None
) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: numpy>=1\n"
    )
    listed = [*files, *(missing or []), "some_package/__pycache__/x.cpython-311.pyc"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in listed))
