"""Numbers in sentences."""

from __future__ import annotations

import pytest

from stackbuild.counting import counted, share, some_of


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


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("", ""),
        ("a", "a"),
        ("a b c", "a, b, c"),
        ("a b c d", "a, b, c and 1 more"),
        ("a b c d e", "a, b, c and 2 more"),
    ],
)
def test_of_many_the_first_are_told_and_the_others_counted(names: str, told: str) -> None:
    assert some_of(names.split(), 3) == told


def test_what_the_others_are_can_be_said() -> None:
    assert some_of(["a 1", "b 2", "c 3"], 1, "pins", between="; ") == "a 1 and 2 more pins"
    assert some_of(["a 1", "b 2"], 2, "pins", between="; ") == "a 1; b 2"
