"""Writes suite/models/reference.onnx from suite/reference_model.py, byte for byte the same each time.

``python make_reference_model.py [FILE]``. Field numbers are those of onnx.proto3 (ONNX 1.16,
https://github.com/onnx/onnx/blob/v1.16.0/onnx/onnx.proto3). IR version 7 and opset 13 are read by every
ONNX Runtime since 1.6.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from suite import reference_model

TARGET = Path(__file__).parent / "suite" / "models" / "reference.onnx"
FLOAT = 1  # TensorProto.DataType.FLOAT
IR_VERSION, OPSET = 7, 13


def varint(value: int) -> bytes:
    """Protocol Buffers' base-128 variable-width integer."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def number(field: int, value: int) -> bytes:
    """An integer field (wire type 0)."""
    return varint(field << 3) + varint(value)


def block(field: int, data: bytes | str) -> bytes:
    """A string, bytes or message field (wire type 2)."""
    content = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name: str, shape: tuple[int, ...], values: list[float]) -> bytes:
    """TensorProto with raw little-endian single-precision data."""
    dims = b"".join(number(1, size) for size in shape)
    return dims + number(2, FLOAT) + block(8, name) + block(9, struct.pack(f"<{len(values)}f", *values))


def value_info(name: str, shape: tuple[int, ...]) -> bytes:
    """ValueInfoProto of a single-precision tensor."""
    dims = b"".join(block(1, number(1, size)) for size in shape)
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, dims)))


def node(operator: str, name: str, sources: tuple[str, ...], target: str) -> bytes:
    """NodeProto with one output."""
    return (
        b"".join(block(1, source) for source in sources)
        + block(2, target)
        + block(3, name)
        + block(4, operator)
    )


def flat(matrix: reference_model.Matrix) -> list[float]:
    """Row-major values."""
    return [value for row in matrix for value in row]


def model() -> bytes:
    """ModelProto of the reference model."""
    m = reference_model
    nodes = (
        node("MatMul", "first_product", ("x", "w1"), "p1"),
        node("Add", "first_bias", ("p1", "b1"), "h1"),
        node("Relu", "rectify", ("h1",), "h2"),
        node("MatMul", "second_product", ("h2", "w2"), "p2"),
        node("Add", "second_bias", ("p2", "b2"), "y"),
    )
    tensors = (
        tensor("w1", (m.INPUTS, m.HIDDEN), flat(m.first_weights())),
        tensor("b1", (m.HIDDEN,), m.first_bias()),
        tensor("w2", (m.HIDDEN, m.OUTPUTS), flat(m.second_weights())),
        tensor("b2", (m.OUTPUTS,), m.second_bias()),
    )
    graph = (
        b"".join(block(1, entry) for entry in nodes)
        + block(2, "reference")
        + b"".join(block(5, entry) for entry in tensors)
        + block(11, value_info("x", (m.ROWS, m.INPUTS)))
        + block(12, value_info("y", (m.ROWS, m.OUTPUTS)))
    )
    opset = block(1, "") + number(2, OPSET)
    return number(1, IR_VERSION) + block(2, "stackbuild") + block(7, graph) + block(8, opset)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else TARGET).write_bytes(model())
