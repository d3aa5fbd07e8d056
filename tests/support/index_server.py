"""A package index on loopback: PEP 503 and PEP 691 pages over folders of wheels, one folder per index."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, unquote

from tests.support.loopback import LoopbackServer, Misbehaviour, Request, Response

_JSON = "application/vnd.pypi.simple.v1+json"


class IndexServer:
    """Serves ``/NAME/simple/PROJECT/`` and ``/NAME/files/FILE`` for every index it was given.

    Args:
        indexes: Index name to the folder that holds its wheels; read anew on every request.
        hashes: Whether the pages carry sha256 hashes (torch channels have been seen without).
        upload_times: File name to RFC 3339 time of upload, for JSON pages.

    Attributes:
        stated: File name to a hash that is stated in place of its own.
    """

    def __init__(
        self,
        indexes: Mapping[str, Path],
        *,
        hashes: bool = True,
        upload_times: Mapping[str, str] | None = None,
    ) -> None:
        self._indexes = dict(indexes)
        self.hashes = hashes
        self._upload_times = dict(upload_times or {})
        self._yanked: dict[str, str] = {}
        self.stated: dict[str, str] = {}
        self.server = LoopbackServer(self._answer)

    def url(self, index: str) -> str:
        """The root of an index's simple pages, with a trailing slash."""
        return f"{self.server.url}/{index}/simple/"

    def file_url(self, index: str, file: str) -> str:
        """The URL of one file."""
        return f"{self.server.url}/{index}/files/{quote(file)}"

    def yank(self, file: str, reason: str = "") -> None:
        """Mark a file as withdrawn by its publisher (PEP 592); it stays downloadable."""
        self._yanked[file] = reason

    def misbehave(self, path_pattern: str, misbehaviour: Misbehaviour) -> None:
        """See ``LoopbackServer.misbehave``; paths are ``/NAME/simple/…`` and ``/NAME/files/…``."""
        self.server.misbehave(path_pattern, misbehaviour)

    def requested(self, path_pattern: str) -> list[Request]:
        """The requests so far whose path matches the regular expression."""
        return self.server.requested(path_pattern)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close()

    def close(self) -> None:
        """Stop answering, as an index that is down."""
        self.server.close()

    def _answer(self, request: Request) -> Response:
        path = unquote(request.path.split("?")[0])
        match = re.fullmatch(r"/([^/]+)/(simple|files)/(.*)", path)
        folder = self._indexes.get(match.group(1)) if match else None
        if match is None or folder is None:
            return Response(404)
        if match.group(2) == "files":
            file = folder / Path(match.group(3)).name
            return Response(body=file.read_bytes()) if file.is_file() else Response(404)
        projects: dict[str, list[Path]] = {}
        for wheel in sorted(folder.glob("*.whl")):
            projects.setdefault(_normalise(wheel.name.split("-")[0]), []).append(wheel)
        as_json = _JSON in request.headers.get("Accept", "")
        project = match.group(3).strip("/")
        if not project:
            return _list_page(sorted(projects), as_json)
        if project not in projects:
            return Response(404)
        return self._project_page(match.group(1), project, projects[project], as_json)

    def _project_page(self, index: str, project: str, wheels: list[Path], as_json: bool) -> Response:
        if not as_json:
            links = []
            for wheel in wheels:
                fragment = f"#sha256={self._hash(wheel)}" if self.hashes else ""
                href = f"/{index}/files/{quote(wheel.name)}{fragment}"
                reason = self._yanked.get(wheel.name)
                yanked = f' data-yanked="{escape(reason)}"' if reason is not None else ""
                links.append(f'<a href="{href}"{yanked}>{escape(wheel.name)}</a><br>')
            return _html("\n".join(links))
        files = []
        for wheel in wheels:
            file: dict[str, object] = {
                "filename": wheel.name,
                "url": self.file_url(index, wheel.name),
                "hashes": {"sha256": self._hash(wheel)} if self.hashes else {},
                "size": wheel.stat().st_size,
            }
            if wheel.name in self._yanked:
                file["yanked"] = self._yanked[wheel.name] or True
            if wheel.name in self._upload_times:
                file["upload-time"] = self._upload_times[wheel.name]
            files.append(file)
        page = {"meta": {"api-version": "1.1"}, "name": project, "files": files, "versions": []}
        page["versions"] = sorted({wheel.name.split("-")[1] for wheel in wheels})
        return Response(body=json.dumps(page).encode(), headers={"Content-Type": _JSON})

    def _hash(self, wheel: Path) -> str:
        return self.stated.get(wheel.name) or _sha256(wheel)


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _list_page(projects: list[str], as_json: bool) -> Response:
    if as_json:
        page = {"meta": {"api-version": "1.1"}, "projects": [{"name": name} for name in projects]}
        return Response(body=json.dumps(page).encode(), headers={"Content-Type": _JSON})
    return _html("\n".join(f'<a href="{name}/">{name}</a>' for name in projects))


def _html(body: str) -> Response:
    text = f"<!DOCTYPE html><html><body>\n{body}\n</body></html>\n"
    return Response(body=text.encode(), headers={"Content-Type": "text/html; charset=utf-8"})
