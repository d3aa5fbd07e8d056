"""Every runtime code has a page, every page a code."""

from __future__ import annotations

import re
from pathlib import Path

from stackbuild.gates.pages import gate_pages
from stackbuild.verification.gate_codes import GATE_CODES

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"')


def test_every_gate_has_a_page_and_every_page_is_used() -> None:
    sources = [
        *(ROOT / "stackbuild" / "verification").rglob("*.py"),
        *(ROOT / "stackbuild/engine").glob("*.py"),
    ]
    named = {code for source in sources for code in _CODE.findall(source.read_text())}
    pages = set(gate_pages("runtime"))
    assert set(GATE_CODES) <= set(gate_pages())
    assert pages <= named


def test_pages_say_something_in_every_field() -> None:
    for code, page in gate_pages("runtime").items():
        assert not page.title.endswith("."), code
        for text in (page.meaning, page.evidence, page.next_step):
            assert text.endswith("."), code
