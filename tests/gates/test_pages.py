"""Every code that a finding or an error can carry has a page, and every page's code is in the source."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from stackbuild.gates.document import gates_document
from stackbuild.gates.pages import gate_areas, gate_pages
from stackbuild.nightly.model import Outcome
from tests.gates.source_codes import SourceCodes

ROOT = Path(__file__).parents[2]


@cache
def source_codes() -> SourceCodes:
    return SourceCodes(ROOT / "stackbuild", ROOT / "verify")


def test_every_code_of_the_source_has_a_page() -> None:
    pages = gate_pages()
    assert {code: place for code, place in source_codes().codes.items() if code not in pages} == {}


def test_every_code_can_be_followed_to_a_literal() -> None:
    assert source_codes().untraced == []


def test_every_page_is_of_a_code_in_the_source() -> None:
    assert sorted(set(gate_pages()) - set(source_codes().codes) - set(gate_pages("outcomes"))) == []


def test_every_outcome_of_a_night_has_a_page() -> None:
    assert set(gate_pages("outcomes")) == set(get_args(Outcome))


def test_a_code_is_described_in_one_table_only() -> None:
    codes = Counter(code for area in gate_areas() for code in gate_pages(area))
    assert [code for code, count in codes.items() if count > 1] == []


def test_pages_are_short_and_say_something_in_every_field() -> None:
    for code, page in gate_pages().items():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
        assert not page.title.endswith("."), code
        assert len(page.title) <= 90, code
        for text in (page.meaning, page.evidence, page.next_step):
            assert text.endswith((".", "}.")), code
            assert len(text) <= 700, code


def test_the_document_is_current() -> None:
    assert (ROOT / "docs" / "gates.md").read_text(encoding="utf-8") == gates_document()


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ('raise LockError("x", code="a-b")', {"a-b"}),
        ('Finding(code="a" if late else "b")', {"a", "b"}),
        ('def make(code):\n    return Finding(code=code)\nmake("a")\nmake(code="b")', {"a", "b"}),
        ('def make(code="c"):\n    return Finding(code=code)', {"c"}),
        (
            'ALL = ("a", "b")\ndef each(codes):\n    return [Finding(code=one) for one in codes]\neach(ALL)',
            {"a", "b"},
        ),
        (
            'def which():\n    return "x y", "a"\ndef f():\n    words, code = which()\n    raise E(words, code=code)',
            {"a"},
        ),
        (
            'class Request:\n    name: str\n    not_found_code: str = "a"\n'
            'def f(request):\n    raise LockError("x", code=request.not_found_code)\nRequest("n", "b")',
            {"a", "b"},
        ),
        ('class OurError(StackbuildError):\n    pass\nraise OurError("x", code="a")', {"a"}),
        ('def explain(code):\n    return PAGES[code]\nexplain("no-code-of-anything")', set()),
        ('def fail(kind, words):\n    raise kind(words, code="a")\nfail(LockError, "x")', {"a"}),
    ],
)
def test_codes_are_followed_through(source: str, codes: set[str], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    found = SourceCodes(tmp_path)
    assert set(found.codes) == codes
    assert found.untraced == []


def test_a_code_made_at_run_time_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text('def f(kind):\n    return Finding(code=f"wheel-{kind}")\n')
    (line,) = SourceCodes(tmp_path).untraced
    assert line.endswith("module.py:2: f'wheel-{kind}'")
