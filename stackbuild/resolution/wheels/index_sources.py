"""Package indexes by name: their pages, wherever the site file or the spec puts them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.once import Once
from stackbuild.progress import Observer
from stackbuild.resolution.wheels.index_page import ACCEPT, IndexFile, parse_page
from stackbuild.site_config import DEFAULT_INDEX, IndexLocation, SiteConfig
from stackbuild.spec.model import IndexSpec
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RefusedError, TransferError, next_step
from stackbuild.urls import without_credentials

URL_INDEX = "url"


@dataclass(frozen=True)
class _Page:
    """What an index answered: the files, or the status with which it said that it does not know the project."""

    files: tuple[IndexFile, ...] | None
    refusal: int | None = None


class PageCache:
    """Answers of indexes by URL, for several stacks that ask for the same; trouble is not kept."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._answers: dict[str, _Page] = {}

    def get(self, url: str) -> _Page | None:
        """What was answered, if it was asked for."""
        with self._guard:
            return self._answers.get(url)

    def put(self, url: str, page: _Page) -> None:
        """Keep an answer."""
        with self._guard:
            self._answers[url] = page


class Indexes:
    """The pages of all indexes; each is fetched once. Safe for several threads.

    Args:
        site: Where the names point.
        declared: The spec's own indexes; the site file goes first.
        default_url: Returns the default index's URL; asked only where the site file says nothing.
        http: The client.
        observer: Told when an index is waited for.
        pages: What other stacks fetched already; None for nothing.
    """

    def __init__(
        self,
        site: SiteConfig,
        declared: Mapping[str, IndexSpec],
        *,
        default_url: Callable[[], str],
        http: HttpClient,
        observer: Observer,
        pages: PageCache | None = None,
    ) -> None:
        self._site = site
        self._declared = declared
        self._default_url = default_url
        self._http = http
        self._observer = observer
        self._guard = threading.Lock()
        self._locations: dict[str, IndexLocation] = {}
        self._pages = Once[tuple[str, str], tuple[IndexFile, ...] | None]()
        self._by_url: dict[str, tuple[IndexFile, ...]] = {}
        self._refusals: dict[tuple[str, str], int] = {}
        self._told: set[str] = set()
        self._fetched = pages or PageCache()

    def page(self, index: str, project: str) -> tuple[IndexFile, ...] | None:
        """Return the files an index has of a project; None when it does not know the project.

        Args:
            index: Index name.
            project: Normalised name.

        Raises:
            NotJudgedError: The index cannot be reached (``index-unreachable``), limits its clients
                (``index-rate-limited``) or wants a password (``index-denied``).
            LockError: Nothing says where the index is (``index-unknown``), or what it serves is no page.
        """
        if index == URL_INDEX and project in self._by_url:
            return self._by_url[project]
        return self._pages.get((index, project), lambda: self._page(index, project))

    def _page(self, index: str, project: str) -> tuple[IndexFile, ...] | None:
        location = self._location(index)
        if location.folder is not None:
            return _folder_page(index, location.folder, project)
        return self._remote_page(index, str(location.url), project)

    def refusal(self, index: str, project: str) -> int | None:
        """The status with which an index said, when ``page`` asked, that it does not know a project."""
        return self._refusals.get((index, project))

    def add_file(self, project: str, file: IndexFile) -> None:
        """Put a wheel that the spec names by URL on the page of the index ``url``."""
        self._by_url[project] = (*self._by_url.get(project, ()), file)

    def is_folder(self, index: str) -> bool:
        """True for an index that is a folder, and so states no hashes."""
        return self._location(index).folder is not None

    def _location(self, index: str) -> IndexLocation:
        with self._guard:
            if index not in self._locations:
                declared = self._declared.get(index)
                location = self._site.index(index, url=declared.url if declared else None)
                if location is None and index == DEFAULT_INDEX:
                    location = IndexLocation(url=self._default_url())
                if location is None:
                    raise LockError(
                        f"nothing says where the index {index!r} is",
                        code="index-unknown",
                        do=f"Add it to the spec's indexes, or write [indexes] {index} = URL-or-folder"
                        " in the site file.",
                    )
                self._locations[index] = location
            return self._locations[index]

    def _remote_page(self, index: str, url: str, project: str) -> tuple[IndexFile, ...] | None:
        page_url = f"{url.rstrip('/')}/{quote(project)}/"
        page = self._fetched.get(page_url)
        if page is None:
            page = self._fetch(index, url, page_url, project)
            self._fetched.put(page_url, page)
        if page.refusal is not None:
            self._refusals[index, project] = page.refusal
        return page.files

    def _fetch(self, index: str, url: str, page_url: str, project: str) -> _Page:
        try:
            answer = self._http.read(
                page_url,
                {"Accept": ACCEPT},
                note=lambda message: self._note(f"index {index}: {message}"),
            )
            return _Page(parse_page(answer.body, answer.headers.get("Content-Type", ""), answer.url))
        except TransferError as error:
            raise unreachable(index, url, error, self._site.mapped_in("indexes", index)) from error
        except RefusedError as error:
            # Object stores answer 403 for what they do not have; torch's channels lie on one.
            if error.status in (403, 404, 410):
                return _Page(None, error.status)
            raise denied(index, page_url, str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise LockError(
                f"what the index {index} serves for {project} is not a page of an index: {error}",
                code="index-invalid",
                where=str(urlsplit(page_url).hostname),
                do="Its URL is the one whose sub-folders are project names.",
            ) from error

    def _note(self, message: str) -> None:
        """Tell of a wait; what several pages of an index wait for is told once."""
        with self._guard:
            known = message in self._told
            self._told.add(message)
        if not known:
            self._observer.note(message)


def _folder_page(index: str, folder: Path, project: str) -> tuple[IndexFile, ...] | None:
    """The wheels of a project in a folder, or in a sub-folder that has the project's name."""
    if not folder.is_dir():
        raise NotJudgedError(
            f"the folder of the index {index} does not exist",
            code="index-unreachable",
            where=str(folder),
            do="Correct it in the site file.",
        )
    found = [*folder.glob("*.whl"), *(folder / project).glob("*.whl")]
    files = [
        IndexFile(name=path.name, url=str(path.absolute()), size=path.stat().st_size)
        for path in sorted(found, key=lambda path: path.name)
        if canonicalize_name(path.name.partition("-")[0]) == project
    ]
    return tuple(files) or None


def unreachable(index: str, url: str, error: TransferError, mapped_in: str = "") -> NotJudgedError:
    """What is said of an index that does not answer, after all tries.

    Args:
        index: Its name.
        url: What was asked for; shown without user and password.
        error: The last failure.
        mapped_in: The file or variable that says where the index is; empty for none.
    """
    state = "limits its clients" if error.limiting else "cannot be reached"
    return NotJudgedError(
        f"the index {index} {state}: {error.reason}",
        code="index-rate-limited" if error.limiting else "index-unreachable",
        where=without_credentials(url),
        do=next_step(error, f"the index {index}", mapped_in),
    )


def denied(index: str, url: str, reason: str) -> NotJudgedError:
    """What is said of an index that answers and lets nobody in."""
    return NotJudgedError(
        f"the index {index} refuses: {reason}",
        code="index-denied",
        where=urlsplit(url).hostname or "",
        do="Put a user and token into its URL in the site file, or into ~/.netrc; or ask who runs the proxy.",
    )
