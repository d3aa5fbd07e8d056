"""Writes the page for tests, and reads it as a browser would find it."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

from stackbuild.nightly.history.history import History
from stackbuild.nightly.model import Night
from stackbuild.nightly.page.write import write_page

NOW = datetime(2025, 12, 1, 6, 0, tzinfo=UTC)
ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\"'\u202e\x1b[31m"
_VOID = {"meta", "path", "circle", "input", "rect", "br", "img"}


class Page(HTMLParser):
    """A page's tags, attributes and words; every element that opens must close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.source = text
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def values(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend((tag, name, value or "") for name, value in attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.words.append(data)


def written(folder: Path, *nights: Night, now: datetime = NOW) -> Path:
    """Write the page of these nights; returns its folder."""
    with History(folder / "history.sqlite") as history:
        for night in nights:
            history.add(night)
        write_page(history, folder / "page", now=now)
    return folder / "page"


def index(page: Path) -> Page:
    return Page((page / "index.html").read_text(encoding="utf-8"))


def stack(page: Path, name: str = "torch-cu130") -> Page:
    return Page((page / "stacks" / f"{name}.html").read_text(encoding="utf-8"))
