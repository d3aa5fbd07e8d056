"""The page, as text; how a browser shows it is in test_html_in_browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

from stackbuild.reports.document import Part
from stackbuild.reports.html_report import render_html
from tests.reports.documents import ATTACK, DOUBTFUL, HOSTILE, USUAL, WELL, WRONG

_VOID = {"meta", "rect"}
# Elements and attributes that could run or fetch something.
_ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section", "h1", "h2", "p", "a",
    "dl", "div", "dt", "dd", "ol", "li", "code", "span", "strong", "table", "thead", "tbody", "tr", "th", "td",
    "figure", "figcaption", "svg", "text", "rect", "details", "summary", "pre",
}  # fmt: skip


class _Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend((tag, name, value or "") for name, value in attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]


def test_the_page_holds_verdict_steps_matrix_evidence_stack_plots_and_log() -> None:
    page = _Page(render_html(USUAL))
    assert page.open == []
    text = " ".join(" ".join(page.words).split())
    assert "FAIL: verify torch-cpu:latest" in text
    assert "Not complete : 2 gates were not judged." in text
    for heading in ("Next steps", "Gates", "Time and memory", "Frozen stack", "Evidence", "Container log"):
        assert heading in text
    assert "6.1.0-18 must be 6.8.0" in text
    assert "580.95.05 as demanded" in text
    assert "3.2 GB" in text
    assert "Waived: wanted (platform team, until 2027-01-01)" in text
    assert "first line last line" in text
    assert page.tags.count("svg") == 2


def test_what_failed_is_open_and_what_passed_is_folded() -> None:
    page = render_html(USUAL)
    assert "1 gate has nothing to judge here" in page
    assert "no CUDA wheels" in page
    opened = re.findall(r'<details id="[^"]+" class="(\w+)"( open)?>', page)
    assert opened == [
        ("fail", " open"),
        ("error", " open"),
        ("warn", " open"),
        ("pass", ""),
        ("skip", ""),
    ]


def test_every_link_leads_to_its_evidence() -> None:
    page = _Page(render_html(USUAL))
    assert set(page.values("href")) <= {f"#{anchor}" for anchor in page.values("id")}
    assert len(page.values("href")) == 3 + 5


def test_nothing_is_fetched_and_nothing_runs() -> None:
    for document in (USUAL, HOSTILE):
        page = _Page(render_html(document))
        assert set(page.tags) <= _ALLOWED
        names = {name for _, name, _ in page.attributes}
        assert not names & {"src", "srcset", "style", "action", "formaction", "xlink:href", "data"}
        assert not [name for name in names if name.startswith("on")]
        assert all(value.startswith("#") for value in page.values("href"))
        assert "default-src 'none'" in " ".join(page.values("content"))
        assert "url(" not in render_html(document)


def test_text_of_an_image_stays_text() -> None:
    page = render_html(HOSTILE)
    assert page.count("<title>") == 1
    parsed = _Page(page)
    assert parsed.open == []
    text = "".join(parsed.words)
    assert "<script>document.title='owned'</script>" in text
    assert "{{ 7*7 }}" in text
    assert "\\x1b[31mred" in text
    assert not [char for char in page if ord(char) < 0x20 and char not in "\n\t"]
    page.encode("utf-8")
    assert ATTACK not in page


def test_megabytes_of_log_make_a_page_that_can_be_read() -> None:
    flood = WRONG.model_copy(update={"details": {"output": "x" * 10_000_000, "list": ["y" * 100] * 100_000}})
    page = render_html(
        replace(USUAL, parts=(Part("p", (flood,)),), log="z" * 10_000_000, log_bytes=10_000_000)
    )
    assert len(page) < 200_000
    assert "characters left out" in page
    assert "of which the end is shown" in page


def test_runs_in_several_modes_are_columns_of_the_matrix() -> None:
    parts = (Part("hook", (WELL, DOUBTFUL)), Part("cdi", (WRONG, WELL)))
    page = render_html(replace(USUAL, parts=parts))
    assert '<th scope="col">hook</th><th scope="col">cdi</th>' in page
    row = re.search(r"<code>ort-version</code></th>\s*<td>(.*?)</td>\s*<td>(.*?)</td>", page, re.S)
    assert row is not None
    assert "·" in row[1]
    assert ">FAIL<" in row[2]
