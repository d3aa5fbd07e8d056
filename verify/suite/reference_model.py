"""The shipped model's numbers, in plain Python: ``Relu(X @ W1 + B1) @ W2 + B2``.

Every weight and input is a small multiple of 1/16, so it is exact in half, single and double precision,
and the reference has no rounding of its own.
"""

from __future__ import annotations

import math
from typing import List

Matrix = List[List[float]]

ROWS, INPUTS, HIDDEN, OUTPUTS = 8, 32, 64, 16


def _pattern(rows: int, columns: int, step: int, modulus: int) -> Matrix:
    return [
        [((row * step + column * (step + 2)) % modulus - modulus // 2) / 16.0 for column in range(columns)]
        for row in range(rows)
    ]


def first_weights() -> Matrix:
    """W1, INPUTS × HIDDEN."""
    return _pattern(INPUTS, HIDDEN, 37, 23)


def first_bias() -> List[float]:
    """B1, HIDDEN values."""
    return _pattern(1, HIDDEN, 11, 13)[0]


def second_weights() -> Matrix:
    """W2, HIDDEN × OUTPUTS."""
    return _pattern(HIDDEN, OUTPUTS, 29, 19)


def second_bias() -> List[float]:
    """B2, OUTPUTS values."""
    return _pattern(1, OUTPUTS, 7, 11)[0]


def inputs() -> Matrix:
    """X, ROWS × INPUTS."""
    return _pattern(ROWS, INPUTS, 5, 17)


def expected() -> Matrix:
    """The outputs for ``inputs()`` in double precision, summed exactly."""
    hidden = _affine(inputs(), first_weights(), first_bias())
    rectified = [[max(value, 0.0) for value in row] for row in hidden]
    return _affine(rectified, second_weights(), second_bias())


def _affine(left: Matrix, weights: Matrix, bias: List[float]) -> Matrix:
    columns = list(zip(*weights))
    return [
        [math.fsum([*(a * b for a, b in zip(row, column)), offset]) for column, offset in zip(columns, bias)]
        for row in left
    ]
