"""What apt repositories list today, read over HTTP: no apt, no container.

Debian repository format (wiki.debian.org/DebianRepository/Format): InRelease names the lists and their
hashes, Packages the debs. The signature is not checked here: nothing is installed from these answers, and
whatever is fetched later is checked against the lock.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stackbuild.deb822 import parse_stanzas
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.progress import Observer
from stackbuild.resolution.debs.apt_sources import AptRepository
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.retry import RefusedError, TransferError, next_step
from stackbuild.store.store import Store

# Ubuntu's largest list is about 70 MB; beyond this one is no list but a bomb.
_LARGEST_LIST = 512 << 20
_GZIP = 16 + zlib.MAX_WBITS
_OPENERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".xz": lambda packed: lzma.LZMADecompressor().decompress(packed, _LARGEST_LIST),
    ".gz": lambda packed: zlib.decompressobj(_GZIP).decompress(packed, _LARGEST_LIST),
    "": bytes,
}
_CLEARSIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_SIGNATURE = "-----BEGIN PGP SIGNATURE-----"
_HASH_LENGTH = 64
# Repository format, "No-Support-for-Architecture-all": every architecture's list has those debs as well.
_ALL_ELSEWHERE = "No-Support-for-Architecture-all"


@dataclass(frozen=True)
class ListedDeb:
    """One deb as a repository lists it; ``path`` is below the repository's URI."""

    name: str
    version: str
    architecture: str
    repository: str
    suite: str
    path: str
    sha256: str


@dataclass(frozen=True)
class AptLists:
    """Reads lists; those that are as they were last time come from the store.

    Args:
        http: The client.
        store: Keeps lists by their hash.
        observer: Told of fetches and waits.
    """

    http: HttpClient
    store: Store
    observer: Observer

    def read(
        self,
        repository: AptRepository,
        name: str,
        architecture: str,
        names: frozenset[str],
        mapped_in: str = "",
    ) -> tuple[ListedDeb, ...]:
        """What one suite lists of some packages.

        Args:
            repository: The suite, at the URI it is really read from.
            name: What the lock calls the repository; a mirror's URI may end otherwise.
            architecture: Debian's name, for example ``amd64``.
            names: The packages.
            mapped_in: The file or variable that says where the repository is; empty for none.

        Raises:
            LockError: The repository has no such suite (``no-such-apt-suite``).
            NotJudgedError: It cannot be reached or is being updated (``repository-unreachable``), or limits
                its clients (``index-rate-limited``).
        """
        root = _root(repository)
        hashes = self._hashes(repository, root, mapped_in)
        found: list[ListedDeb] = []
        for list_path in _lists(repository, architecture):
            ending = next((ending for ending in _OPENERS if f"{list_path}{ending}" in hashes), None)
            if ending is None:
                continue
            path = self._fetched(repository, root, f"{list_path}{ending}", hashes[f"{list_path}{ending}"])
            try:
                text = _OPENERS[ending](path.read_bytes()).decode("utf-8", errors="replace")
            except (lzma.LZMAError, zlib.error) as error:
                raise _unreachable(
                    repository, f"{list_path}{ending} cannot be unpacked: {error}", ""
                ) from error
            found += _listed(text, name, repository.suite, names)
        return tuple(found)

    def _hashes(self, repository: AptRepository, root: str, mapped_in: str) -> dict[str, str]:
        """Path below the suite to sha256, as InRelease or Release states them."""
        for name in ("InRelease", "Release"):
            try:
                body = self.http.read(f"{root}/{name}", note=self.observer.note).body
            except RefusedError as error:
                if error.status not in (403, 404, 410):
                    raise _unreachable(repository, str(error), "") from error
            except TransferError as error:
                raise _unreachable(
                    repository,
                    error.reason,
                    next_step(error, f"the repository {repository.name}", mapped_in),
                    limiting=error.limiting,
                ) from error
            else:
                return _stated(body.decode("utf-8", errors="replace"))
        raise LockError(
            f"the repository {repository.name} has no suite {repository.suite} any more",
            code="no-such-apt-suite",
            where=repository.uri,
            do="Distributions past their end of life move to an archive: name it in the site file, or move the base on.",
        )

    def _fetched(self, repository: AptRepository, root: str, path: str, sha256: str) -> Path:
        folder = path.rpartition("/")[0]
        urls = (f"{root}/{folder}/by-hash/SHA256/{sha256}", f"{root}/{path}")
        request = FetchRequest(f"{repository.name} {repository.suite} {path}", urls, sha256)
        try:
            return fetch_all([request], self.store, observer=self.observer, http=self.http)[request.name]
        except LockError as error:
            raise _unreachable(
                repository,
                f"its lists do not fit each other ({error.what})",
                "Try again: it is being updated.",
            ) from error
        except NotJudgedError as error:
            limiting = error.code == "index-rate-limited"
            raise _unreachable(repository, error.what, error.do, limiting=limiting) from error


def _root(repository: AptRepository) -> str:
    flat = repository.suite.endswith("/")
    return (
        f"{repository.uri}/{repository.suite.strip('/')}"
        if flat
        else f"{repository.uri}/dists/{repository.suite}"
    )


def _lists(repository: AptRepository, architecture: str) -> Iterator[str]:
    if repository.suite.endswith("/"):
        yield "Packages"
        return
    for component in repository.components:
        yield f"{component}/binary-{architecture}/Packages"
        # Some repositories list what fits every architecture in a list of its own.
        yield f"{component}/binary-all/Packages"


def _stated(release: str) -> dict[str, str]:
    if release.startswith(_CLEARSIGNED):
        # A clear-signed text begins after the first empty line (RFC 9580, section 7).
        release = release.partition("\n\n")[2].partition(_SIGNATURE)[0]
    fields = parse_stanzas(release)
    lines = (fields[0].get("SHA256", "") if fields else "").splitlines()
    rows = (line.split() for line in lines)
    stated = {row[2]: row[0] for row in rows if len(row) == 3 and len(row[0]) == _HASH_LENGTH}
    # Repositories without "all" among their architectures have been seen to leave old lists of it lying.
    own_list = fields and "all" in fields[0].get("Architectures", "").split()
    if not own_list or fields[0].get(_ALL_ELSEWHERE) == "Packages":
        return {path: sha256 for path, sha256 in stated.items() if "/binary-all/" not in path}
    return stated


def _listed(text: str, repository: str, suite: str, names: Iterable[str]) -> Iterator[ListedDeb]:
    wanted = frozenset(f"Package: {name}\n" for name in names)
    start = 0
    while start < len(text):
        end = text.find("\n\n", start)
        end = len(text) if end < 0 else end
        # A list has tens of thousands of stanzas; all but the wanted are told by their first line.
        if text[start : text.find("\n", start) + 1] in wanted:
            for stanza in parse_stanzas(text[start:end]):
                yield _listed_deb(stanza, repository, suite)
        start = end + 2


def _listed_deb(stanza: Mapping[str, str], repository: str, suite: str) -> ListedDeb:
    return ListedDeb(
        name=stanza["Package"],
        version=stanza.get("Version", ""),
        architecture=stanza.get("Architecture", ""),
        repository=repository,
        suite=suite,
        path=stanza.get("Filename", "").removeprefix("./"),
        sha256=stanza.get("SHA256", ""),
    )


def _unreachable(repository: AptRepository, why: str, do: str, *, limiting: bool = False) -> NotJudgedError:
    return NotJudgedError(
        f"the lists of the repository {repository.name} cannot be read: {why}",
        code="index-rate-limited" if limiting else "repository-unreachable",
        where=f"{repository.uri} {repository.suite}",
        do=do or f"Check the network, or map the repository {repository.name} to a mirror in the site file.",
    )
