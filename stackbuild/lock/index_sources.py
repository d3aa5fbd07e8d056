"""Package indexes by name: their pages, wherever the site file or the spec puts them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from packaging.utils import canonicalize_name

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.lock.index_page import ACCEPT, IndexFile, parse_page
from stackbuild.progress import Observer
from stackbuild.site_config import DEFAULT_INDEX, IndexLocation, SiteConfig
from stackbuild.spec.model import IndexSpec
from stackbuild.store.http import HttpClient, RefusedError, TransferError, next_step

URL_INDEX = "url"


class Indexes:
    """The pages of all indexes; each is fetched once. Safe for several threads.

    Args:
        site: Where the names point.
        declared: The spec's own indexes; the site file goes first.
        default_url: Returns the default index's URL; asked only where the site file says nothing.
        http: The client.
        observer: Told when an index is waited for.
    """

    def __init__(
        self,
        site: SiteConfig,
        declared: Mapping[str, IndexSpec],
        *,
        default_url: Callable[[], str],
        http: HttpClient,
        observer: Observer,
    ) -> None:
        self._site = site
        self._declared = declared
        self._default_url = default_url
        self._http = http
        self._observer = observer
        self._guard = threading.Lock()
        self._locations: dict[str, IndexLocation] = {}
        self._pages: dict[tuple[str, str], tuple[IndexFile, ...] | None] = {}
        self._refusals: dict[tuple[str, str], int] = {}

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
        key = (index, project)
        if key not in self._pages:
            location = self._location(index)
            if location.folder is not None:
                page = _folder_page(index, location.folder, project)
            else:
                page = self._remote_page(index, str(location.url), project)
            self._pages[key] = page
        return self._pages[key]

    def refusal(self, index: str, project: str) -> int | None:
        """The status with which an index said, when ``page`` asked, that it does not know a project."""
        return self._refusals.get((index, project))

    def add_file(self, project: str, file: IndexFile) -> None:
        """Put a wheel that the spec names by URL on the page of the index ``url``."""
        key = (URL_INDEX, project)
        self._pages[key] = (*(self._pages.get(key) or ()), file)

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
        try:
            answer = self._http.read(
                page_url,
                {"Accept": ACCEPT},
                note=lambda message: self._observer.note(f"index {index}: {message}"),
            )
            return parse_page(answer.body, answer.headers.get("Content-Type", ""), answer.url)
        except TransferError as error:
            raise unreachable(index, page_url, error) from error
        except RefusedError as error:
            # Object stores answer 403 for what they do not have; torch's channels lie on one.
            if error.status in (403, 404, 410):
                self._refusals[index, project] = error.status
                return None
            raise denied(index, page_url, str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise LockError(
                f"what the index {index} serves for {project} is not a page of an index: {error}",
                code="index-invalid",
                where=str(urlsplit(page_url).hostname),
                do="Its URL is the one whose sub-folders are project names.",
            ) from error


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


def unreachable(index: str, url: str, error: TransferError) -> NotJudgedError:
    """What is said of an index that does not answer, after all tries."""
    state = "limits its clients" if error.limiting else "cannot be reached"
    return NotJudgedError(
        f"the index {index} {state}: {error.reason}",
        code="index-rate-limited" if error.limiting else "index-unreachable",
        where=str(urlsplit(url).hostname),
        do=next_step(error, f"the index {index}"),
    )


def denied(index: str, url: str, reason: str) -> NotJudgedError:
    """What is said of an index that answers and lets nobody in."""
    return NotJudgedError(
        f"the index {index} refuses: {reason}",
        code="index-denied",
        where=urlsplit(url).hostname or "",
        do="Put a user and token into its URL in the site file, or into ~/.netrc; or ask who runs the proxy.",
    )
