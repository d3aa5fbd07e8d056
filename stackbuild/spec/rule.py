"""What a rule of the spec answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """A rule that the spec breaks.

    Attributes:
        path: Keys and list positions down to the value, in the spec's spelling.
        message: A plain sentence.
        suggestion: What to write in its place.
        code: Stable kebab-case code.
    """

    path: tuple[str | int, ...]
    message: str
    suggestion: str = ""
    code: str = "spec-invalid"
