"""Geometry of strips, sparklines and charts."""

from __future__ import annotations

import re

import pytest

from stackbuild.nightly.page.charts import chart, sparkline, strip


def test_a_strip_draws_each_night_at_its_place() -> None:
    drawn = strip(["pass", None, "fail"], cell=5, gap=1)
    assert drawn.width == 15
    assert dict(drawn.paths) == {"pass": "M0 6h4v4h-4z", "fail": "M10 0h4v10h-4z"}


def test_equal_neighbours_of_a_long_strip_are_one() -> None:
    drawn = strip(["pass"] * 300 + ["error"] + ["pass"] * 64)
    assert drawn.width == 365
    assert dict(drawn.paths) == {
        "pass": "M0 6h300v4h-300zM301 6h64v4h-64z",
        "error": "M300 0h1v4h-1zM300 6h1v4h-1z",
    }


def test_no_two_shapes_are_alike_without_colour() -> None:
    shapes = [strip([name]).paths[0][1] for name in ("pass", "warn", "fail", "error", "skip")]
    assert len(set(shapes)) == 5


@pytest.mark.parametrize("values", [[], [5.0], [0.0, 0.0], [0.0, 5.0]])
def test_one_value_is_no_line(values: list[float]) -> None:
    assert sparkline(values) is None
    assert chart(values, [False] * len(values)) is None


def test_a_line_is_broken_where_nights_have_no_value() -> None:
    drawn = chart([100.0, 100.0, 0.0, 200.0, 200.0], [False, True, False, False, False])
    assert drawn is not None
    assert drawn.path.count("M") == 2
    assert drawn.path.startswith("M0 ")
    assert drawn.marks == (250,)
    assert (drawn.low, drawn.high) == (pytest.approx(95), pytest.approx(205))


def test_a_lonely_night_is_a_dot_and_the_last_value_ends_the_line() -> None:
    drawn = sparkline([100.0, 0.0, 100.0, 0.0, 100.0])
    assert drawn is not None
    assert drawn.path == "M2 12h0M48 12h0M94 12h0"
    assert drawn.dot == (94, 12)


def test_what_hardly_moves_looks_so() -> None:
    drawn = chart([1000.0, 1001.0] * 10, [False] * 20)
    assert drawn is not None
    assert set(re.findall("[a-z]", drawn.path)) == {"h"}, "a thousandth is no step"


def test_a_year_is_a_median_over_its_nights() -> None:
    values = [100.0 if number % 10 else 300.0 for number in range(365)]
    drawn = chart(values, [False] * 365)
    assert drawn is not None
    assert drawn.each.count("l") > 60
    assert "l" not in drawn.path, "single slow nights do not move it"


def test_a_sparkline_of_a_year_has_few_points() -> None:
    drawn = sparkline([float(1 + number % 7) for number in range(365)])
    assert drawn is not None
    assert len(drawn.path) < 500
