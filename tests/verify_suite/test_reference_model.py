"""The shipped ONNX model: its bytes come from its script, its numbers from plain arithmetic."""

from __future__ import annotations

import importlib
import struct
from fractions import Fraction
from typing import Any

from tests.verify_suite.support import SUITE


def test_the_committed_model_is_what_its_script_writes() -> None:
    script: Any = importlib.import_module("make_reference_model")
    assert (SUITE / "suite" / "models" / "reference.onnx").read_bytes() == script.model()


def test_expected_outputs_are_exact() -> None:
    model: Any = importlib.import_module("suite.reference_model")
    hidden = _affine(model.inputs(), model.first_weights(), model.first_bias())
    rectified = [[max(value, Fraction(0)) for value in row] for row in hidden]
    exact = _affine(rectified, model.second_weights(), model.second_bias())
    assert [[Fraction(value) for value in row] for row in model.expected()] == exact
    assert any(value < 0 for row in hidden for value in row), "the Relu has something to cut"
    assert len(exact) == model.ROWS
    assert len(exact[0]) == model.OUTPUTS


def test_weights_are_exact_in_half_precision() -> None:
    model: Any = importlib.import_module("suite.reference_model")
    for matrix in (model.inputs(), model.first_weights(), model.second_weights(), [model.first_bias()]):
        for value in (value for row in matrix for value in row):
            assert struct.unpack("<e", struct.pack("<e", value))[0] == value


def _affine(left: Any, weights: Any, bias: Any) -> list[list[Fraction]]:
    return [
        [
            sum(
                (Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)),
                Fraction(offset),
            )
            for column, offset in zip(zip(*weights, strict=True), bias, strict=True)
        ]
        for row in left
    ]
