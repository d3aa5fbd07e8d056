"""Numbers in sentences."""

from __future__ import annotations

import pytest

from stackbuild.counting import counted, share


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1234, "1,234 files")]
)
def test_counted(number: int, text: str) -> None:
    assert counted(number, "file") == text


def test_a_plural_of_its_own() -> None:
    assert counted(1, "library", "libraries") == "1 library"
    assert counted(3, "library", "libraries") == "3 libraries"


@pytest.mark.parametrize(
    ("number", "total", "text"),
    [
        (1, 1, "the one wheel is"),
        (3, 3, "all 3 wheels are"),
        (0, 1, "0 of 1 wheel are"),
        (1, 3, "1 of 3 wheels is"),
        (2, 3, "2 of 3 wheels are"),
    ],
)
def test_share(number: int, total: int, text: str) -> None:
    assert share(number, total, "wheel") == text
