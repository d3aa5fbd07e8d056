"""Sizes for people."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stackbuild.sizes import size_text


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1536, "1.5 kB"),
        (64 << 20, "67.1 MB"),
        (999_499_999, "999 MB"),
        (999_500_000, "1.0 GB"),
        (15 << 30, "16.1 GB"),
        (99_949_000_000, "99.9 GB"),
        (99_951_000_000, "100 GB"),
        (143_771 << 20, "151 GB"),
        (2.5e12, "2.5 TB"),
        (2.5e15, "2500 TB"),
    ],
)
def test_three_digits_in_multiples_of_a_thousand(count: float, shown: str) -> None:
    assert size_text(count) == shown


def test_nobody_writes_sizes_by_hand() -> None:
    by_hand = re.compile(r"/ ?1e[369]\b|\} ?[kKMGT]i?B\b(?!/s)|>> ?[123]0\}|// ?1024")
    package = Path(__file__).parents[1] / "stackbuild"
    found = [
        f"{path.relative_to(package)}:{number}"
        for path in package.rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if by_hand.search(line)
    ]
    assert found == []
