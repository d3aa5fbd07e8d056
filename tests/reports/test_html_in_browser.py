"""The page in a real browser: light and dark, on a phone, and with an image that means ill."""

from __future__ import annotations

import html
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from stackbuild.reports.document import Document
from stackbuild.reports.html_report import render_html
from tests.reports.documents import HOSTILE, USUAL
from tests.support.browser import laid_out, screenshot

pytestmark = pytest.mark.browser

# Holds the page in a frame of a phone's width and writes down what became of it there.
_PROBE = """<!DOCTYPE html><meta charset="utf-8"><title>probe</title>
<iframe width="360" height="740" srcdoc="{page}"></iframe><pre id="seen"></pre>
<script>
onload = () => {{
  const frame = document.querySelector("iframe").contentWindow, page = frame.document;
  const style = (what) => frame.getComputedStyle(page.querySelector(what));
  const pill = style("header .pill");
  document.getElementById("seen").textContent = JSON.stringify({{
    title: page.title,
    width: page.documentElement.scrollWidth,
    background: style("body").backgroundColor,
    ink: style("body").color,
    card: style("section").backgroundColor,
    pill: pill.color, pillBackground: pill.backgroundColor,
    soft: style(".counts").color,
    fetched: frame.performance.getEntriesByType("resource").length,
    open: page.querySelectorAll("details[open]").length,
    bar: page.querySelector(".plot .bar").getBoundingClientRect().width,
    plot: page.querySelector(".plot").getBoundingClientRect().width,
    foreign: page.querySelectorAll("script, img, iframe, link, object").length,
  }});
}};
</script>
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_on_a_phone_in_light_and_dark(tmp_path: Path, dark: bool) -> None:
    seen = _seen(tmp_path, USUAL, dark=dark)
    assert seen["width"] == 360, "nothing is wider than the phone"
    assert seen["title"] == "FAIL: verify torch-cpu:latest"
    assert seen["open"] == 3, "what failed is shown without a script"
    assert seen["fetched"] == 0
    assert seen["bar"] == pytest.approx(seen["plot"])
    assert (_luminance(seen["background"]) < 0.1) is dark
    # WCAG 2.2, 1.4.3: text has a contrast of at least 4.5 : 1.
    assert _contrast(seen["ink"], seen["background"]) > 7
    assert _contrast(seen["soft"], seen["card"]) > 4.5
    assert _contrast(seen["pill"], seen["pillBackground"]) > 4.5


def test_an_ill_meaning_image_runs_nothing_and_fetches_nothing(tmp_path: Path) -> None:
    seen = _seen(tmp_path, HOSTILE, dark=False)
    assert seen["title"].startswith("FAIL: verify <script>document.title='owned'</script>")
    assert (seen["foreign"], seen["fetched"]) == (0, 0)
    assert seen["width"] == 360, "text without a blank is broken"


def test_a_picture_of_it_is_light_or_dark_from_edge_to_edge(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_html(USUAL))
    for dark in (False, True):
        target = tmp_path / f"{dark}.png"
        screenshot(page, target, dark=dark, height=1200)
        assert target.stat().st_size > 20_000, "something is drawn"
        assert (_luminance(_corner(target)) < 0.1) is dark


def _seen(folder: Path, document: Document, *, dark: bool) -> dict[str, Any]:
    probe = folder / "probe.html"
    probe.write_text(_PROBE.format(page=html.escape(render_html(document))))
    found = re.search(r'<pre id="seen">(.*?)</pre>', laid_out(probe, dark=dark), re.S)
    assert found is not None
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen


def _corner(picture: Path) -> str:
    """The colour of a PNG's first pixel, which no filter changes (PNG specification 1.2, section 6)."""
    content = picture.read_bytes()
    start = content.index(b"IDAT") + 4
    row = zlib.decompressobj().decompress(content[start:], 4)
    return f"rgb({row[1]}, {row[2]}, {row[3]})"


def _luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
