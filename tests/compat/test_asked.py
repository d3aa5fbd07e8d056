"""The list of gates that a check asks of a stack, against the code of those gates."""

from __future__ import annotations

import ast
from pathlib import Path

from stackbuild import compat
from stackbuild.compat.asked import GATES_OF_A_STACK

MODULES = ("base", "wheels", "onnxruntime", "environment", "policy")


def test_the_list_is_what_the_gates_find() -> None:
    found = {
        keyword.value.value
        for name in MODULES
        for node in ast.walk(ast.parse((Path(compat.__path__[0]) / f"{name}.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    }
    assert set(GATES_OF_A_STACK) == found - {"waiver-expired", "waiver-unused"}
    assert len(set(GATES_OF_A_STACK)) == len(GATES_OF_A_STACK)
