"""Links lead to reports below or beside the page's folder, and nowhere else."""

from __future__ import annotations

import pytest

from stackbuild.nightly.history.model import Series
from stackbuild.nightly.page.places import page_name, report_link


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("reports/20261130T021500Z-3f2a/torch/scan.html", "./reports/20261130T021500Z-3f2a/torch/scan.html"),
        ("../reports/a.html", "./../reports/a.html"),
        ("a b/ü#?.html", "./a%20b/%C3%BC%23%3F.html"),
        ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
        ("//elsewhere.example/x", ""),
        ("/etc/passwd", ""),
        ("reports/../../../etc/passwd", ""),
        ("..", ""),
        ("", ""),
        ("a\\..\\b", ""),
        ("a\nb", ""),
    ],
)
def test_links(path: str, link: str) -> None:
    assert report_link(path) == link
    assert report_link(path, "../") == (f"../{link[2:]}" if link else "")


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "a\\b", "x" * 200, "a b", "ü", "-x", "a\nb"]
)
def test_a_name_that_is_more_than_a_name_becomes_a_hash(name: str) -> None:
    made = page_name(Series(name, "linux/amd64", only=True))
    assert len(made) == 32 + len(".html")
    assert made != page_name(Series(f"{name}2", "linux/amd64", only=True))


def test_a_plain_name_stays() -> None:
    assert page_name(Series("torch-cu13.0", "linux/amd64", only=True)) == "torch-cu13.0.html"
