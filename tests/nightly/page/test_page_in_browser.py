"""The page of nights in a real browser: wide and on a phone, light and dark, filtered and sorted."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stackbuild.findings import Verdict
from tests.nightly.nights import finding, night, result
from tests.nightly.page.pages import ATTACK, written
from tests.nightly.year import year
from tests.support.browser import console, laid_out, screenshot

pytestmark = pytest.mark.browser

WIDTHS = (360, 700, 1400)
# Holds pages in frames of several widths, and writes down what became of them there.
_PROBE = """<!DOCTYPE html><meta charset="utf-8"><title>probe</title>
{frames}<pre id="seen"></pre>
<script>
onload = () => {{
  const seen = [...document.querySelectorAll("iframe")].map((frame) => {{
    const page = frame.contentWindow.document, window = frame.contentWindow;
    const rows = () => [...page.querySelectorAll("#table tbody tr")].filter((row) => row.offsetHeight > 0);
    const names = () => rows().map((row) => row.querySelector("th a").textContent);
    const boxes = (what) => [...page.querySelectorAll(what)].map((found) => found.getBoundingClientRect());
    const colours = (what) => [...page.querySelectorAll(what)].slice(0, 40).map((found) => {{
      let back = found;
      while (window.getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
      const shape = found.tagName === "path";
      const style = window.getComputedStyle(found);
      return [shape ? style.fill : style.color, window.getComputedStyle(back).backgroundColor];
    }});
    const told = {{
      title: page.title, width: page.documentElement.scrollWidth,
      fetched: window.performance.getEntriesByType("resource").length,
      texts: colours("th, td, dd, dt, p, small, a, .pill, label, input, select, output, summary, button"),
      shapes: colours(".cells path"),
      spilling: boxes("body *").filter((box) => box.right > window.innerWidth + 1).length,
      drawn: boxes("svg").filter((box) => box.width < 5).length,
    }};
    const name = page.getElementById("name"), outcome = page.getElementById("outcome");
    if (!name) return told;
    const say = () => page.getElementById("shown").textContent;
    const enter = (field, value) => {{
      field.value = value;
      field.dispatchEvent(new Event(field === name ? "input" : "change"));
    }};
    told.all = names(); told.said = say();
    told.labels = [...page.querySelectorAll("input, select")].every((field) => field.labels.length === 1);
    enter(name, "TEAM-003 torch"); told.named = names(); told.saidNamed = say();
    enter(name, "nothing like it"); told.none = names();
    enter(name, ""); enter(outcome, "failed"); told.failed = names();
    enter(outcome, "");
    const heads = [...page.querySelectorAll("thead th")], click = (number) => heads[number].querySelector("button").click();
    click(0); told.byName = names(); told.sorted = heads.map((head) => head.getAttribute("aria-sort"));
    click(0); told.byNameDown = names();
    click(4); told.bySize = rows().map((row) => Number(row.cells[4].dataset.key));
    return told;
  }});
  document.getElementById("seen").textContent = JSON.stringify(seen);
}};
</script>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of many nights, the last with a stack that failed and one that means ill."""
    nights = list(year(12, 70))
    ill = {"findings": (finding("a", Verdict.FAIL, summary=ATTACK * 20),), "config_digest": ATTACK}
    last = night(
        *nights[-1].stacks,
        result(outcome="failed", findings=(finding("torch-cuda", Verdict.FAIL), finding("b", Verdict.ERROR))),
        result(f"{ATTACK}{'x' * 300}", outcome="failed", **ill),
        number=70,
    )
    return written(tmp_path_factory.mktemp("nights"), *nights, last)


@pytest.fixture(scope="module")
def index(folder: Path) -> list[dict[str, Any]]:
    return _seen(folder / "index.html", WIDTHS)


def test_nothing_is_wider_than_the_window(folder: Path, index: list[dict[str, Any]]) -> None:
    stacks = sorted((folder / "stacks").iterdir())
    ill = next(path for path in stacks if re.fullmatch(r"[0-9a-f]{32}\.html", path.name))
    for seen in (index, _seen(ill, WIDTHS), _seen(folder / "stacks" / "torch-cu130.html", WIDTHS)):
        assert [found["width"] for found in seen] == list(WIDTHS)
        assert [found["spilling"] for found in seen] == [0, 0, 0]
        assert [found["drawn"] for found in seen] == [0, 0, 0], "no picture has lost its width"


def test_nothing_is_fetched_and_nothing_is_said_on_the_console(
    folder: Path, index: list[dict[str, Any]]
) -> None:
    assert {seen["fetched"] for seen in index} == {0}
    assert console(folder / "index.html") == []
    assert console(folder / "stacks" / "torch-cu130.html") == []


def test_the_states_are_there(folder: Path) -> None:
    page = html.unescape(re.sub(r"<[^>]+>", " ", laid_out(folder / "index.html")))
    text = " ".join(page.split())
    assert "2 failed" in text
    assert "torch-cu130 000000000000 failed since 2026-02-09, 1 night torch-cuda was judged never" in text
    assert re.search(r"torch-\w+-team-000 [0-9a-f]{12} unchanged since [\d-]+, \d+ nights? [\d-]+", text)


def test_filter_and_sorting(index: list[dict[str, Any]]) -> None:
    for seen in index:
        assert len(seen["all"]) == 14
        assert (seen["said"], seen["labels"]) == ("14 stacks", True)
        assert [name[-8:] for name in seen["named"]] == ["team-003"]
        assert seen["saidNamed"] == "1 of 14 stacks"
        assert seen["none"] == []
        assert len(seen["failed"]) >= 2
        assert "torch-cu130" in seen["failed"]
        assert seen["byName"] != seen["all"]
        assert sorted(seen["byName"][1:]) == seen["byName"][1:], "the hostile name has its own place"
        assert seen["byNameDown"] == seen["byName"][::-1]
        assert seen["sorted"][0] == "ascending"
        assert seen["sorted"].count(None) == len(seen["sorted"]) - 1
        assert seen["bySize"] == sorted(seen["bySize"])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_can_be_read_in_light_and_dark(folder: Path, dark: bool) -> None:
    (index,) = _seen(folder / "index.html", (1400,), dark=dark)
    (own,) = _seen(folder / "stacks" / "torch-cu130.html", (1400,), dark=dark)
    assert (_luminance(index["texts"][0][1]) < 0.1) is dark
    for seen in (index, own):
        # WCAG 2.2: text 4.5 : 1 (1.4.3), pictures 3 : 1 (1.4.11).
        assert min(_contrast(*pair) for pair in seen["texts"]) > 4.5
        assert min(_contrast(*pair) for pair in seen["shapes"]) > 3


def test_a_picture_is_made(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "index.png"
    screenshot(folder / "index.html", target, width=1400, height=1000)
    assert target.stat().st_size > 50_000, "something is drawn"


def _seen(page: Path, widths: tuple[int, ...], *, dark: bool = False) -> list[dict[str, Any]]:
    content = html.escape(page.read_text(encoding="utf-8"))
    probe = page.parent.parent / "probe.html"
    frames = "".join(
        f'<iframe width="{width}" height="740" frameborder="0" srcdoc="{content}"></iframe>'
        for width in widths
    )
    probe.write_text(_PROBE.format(frames=frames), encoding="utf-8")
    found = re.search(r'<pre id="seen">(.*?)</pre>', laid_out(probe, dark=dark), re.S)
    assert found is not None
    seen: list[dict[str, Any]] = json.loads(html.unescape(found[1]))
    return seen


def _luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)`` (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
