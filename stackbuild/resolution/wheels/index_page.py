"""A project's page of a package index: read as JSON (PEP 691, 700, 714) or HTML (PEP 503), written as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from packaging.tags import Tag
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON_TYPE}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

# What package indexes list, signatures and long-gone kinds among it.
_DISTRIBUTIONS = (
    *(".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.z", ".tar", ".egg"),
    *(".exe", ".msi", ".rpm", ".deb", ".dmg", ".asc", ".metadata"),
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class IndexFile:
    """One file on a project's page.

    Args:
        name: File name.
        url: Absolute URL, or absolute path of a local file.
        sha256: What the index states, in hex.
        size: Bytes, where stated.
        uploaded: RFC 3339, where stated.
        requires_python: Specifier, where stated.
        yanked: None, or why it was yanked (empty when no reason is given).
        core_metadata: Whether the index serves its METADATA beside it (PEP 658).
    """

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    uploaded: str | None = None
    requires_python: str | None = None
    yanked: str | None = None
    core_metadata: bool = False

    @property
    def is_wheel(self) -> bool:
        """True for a wheel."""
        return self.name.endswith(".whl")

    @cached_property
    def version(self) -> Version | None:
        """The version in its name; None where the name follows no rule."""
        try:
            return parse_wheel_filename(self.name)[1] if self.is_wheel else parse_sdist_filename(self.name)[1]
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            return None

    @cached_property
    def tags(self) -> frozenset[Tag]:
        """A wheel's compatibility tags."""
        return parse_wheel_filename(self.name)[3] if self.is_wheel and self.version else frozenset()

    @cached_property
    def build(self) -> tuple[Any, ...]:
        """A wheel's build tag; the higher one is preferred."""
        return parse_wheel_filename(self.name)[2] if self.is_wheel and self.version else ()


def parse_page(body: bytes, content_type: str, url: str) -> tuple[IndexFile, ...]:
    """Read a page as an index serves it.

    Args:
        body: The page.
        content_type: The Content-Type header.
        url: Where it came from; links are relative to it.

    Raises:
        ValueError: It is neither JSON nor HTML of a package index.
    """
    if content_type.partition(";")[0].strip().lower().endswith("json"):
        try:
            return tuple(_json_files(body, url))
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"its JSON has another form: {error}") from error
    parser = _Links()
    parser.feed(body.decode("utf-8", errors="replace"))
    files = tuple(_html_file(text, attributes, parser.base or url) for attributes, text in parser.links)
    named = any(file.name.lower().endswith(_DISTRIBUTIONS) for file in files)
    # A page without files may be a project's, with links to folders where a server lists one; a page with other
    # links, a form or no tag at all is something else's.
    others = any(not file.url.endswith("/") for file in files)
    if not named and (others or parser.form or not parser.tags):
        raise ValueError("neither JSON nor HTML with files of packages")
    return files


def write_page(project: str, files: Iterable[tuple[IndexFile, str]]) -> bytes:
    """Write a page as JSON. Each file comes with the URL it is to have; METADATA is announced for wheels."""
    entries = []
    for file, url in files:
        entry: dict[str, Any] = {
            "filename": file.name,
            "url": url,
            "hashes": {"sha256": file.sha256} if file.sha256 else {},
            "core-metadata": file.is_wheel,
            "yanked": False if file.yanked is None else file.yanked or True,
        }
        optional = {"size": file.size, "upload-time": file.uploaded, "requires-python": file.requires_python}
        entry |= {key: value for key, value in optional.items() if value is not None}
        entries.append(entry)
    versions = sorted({str(file.version) for file, _ in files if file.version})
    page = {"meta": {"api-version": "1.1"}, "name": project, "versions": versions, "files": entries}
    return json.dumps(page).encode()


def _json_files(body: bytes, url: str) -> Iterator[IndexFile]:
    page = json.loads(body)
    if not isinstance(page, dict) or not isinstance(page.get("files"), list):
        raise ValueError("a JSON page without 'files'")
    for entry in page["files"]:
        # PEP 714 renamed the key; old pages have the old one.
        metadata = entry.get("core-metadata", entry.get("dist-info-metadata", False))
        yanked = entry.get("yanked", False)
        yield IndexFile(
            name=entry["filename"],
            url=urljoin(url, entry["url"]).partition("#")[0],
            sha256=_sha256(entry.get("hashes", {}).get("sha256")),
            size=entry.get("size"),
            uploaded=entry.get("upload-time"),
            requires_python=entry.get("requires-python") or None,
            yanked=(yanked if isinstance(yanked, str) else "") if yanked is not False else None,
            core_metadata=bool(metadata),
        )


def _html_file(text: str, attributes: dict[str, str], base: str) -> IndexFile:
    link, _, fragment = urljoin(base, attributes["href"]).partition("#")
    metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata", "false"))
    return IndexFile(
        name=unquote(urlsplit(link).path.rpartition("/")[2]) or text.strip(),
        url=link,
        sha256=_sha256(fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None),
        requires_python=attributes.get("data-requires-python") or None,
        yanked=attributes.get("data-yanked"),
        core_metadata=metadata != "false",
    )


def _sha256(value: object) -> str | None:
    return value if isinstance(value, str) and _SHA256.fullmatch(value) else None


class _Links(HTMLParser):
    """Collects ``<a href>`` with its attributes and text, and ``<base href>``."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[dict[str, str], str]] = []
        self.base: str | None = None
        self.tags = self.form = False
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags = True
        self.form = self.form or tag == "form"
        attributes = {name: value or "" for name, value in attrs}
        if tag == "base" and attributes.get("href"):
            self.base = attributes["href"]
        if tag == "a" and attributes.get("href"):
            self.links.append((attributes, ""))
            self._inside = True

    def handle_data(self, data: str) -> None:
        if self._inside:
            attributes, text = self.links[-1]
            self.links[-1] = (attributes, text + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._inside = False
