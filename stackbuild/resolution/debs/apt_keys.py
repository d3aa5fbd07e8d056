"""The signing keys of a spec's further apt repositories: fetched, and checked against the spec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stackbuild.errors import LockError
from stackbuild.progress import Observer
from stackbuild.resolution.debs.apt_sources import AptRepository
from stackbuild.spec.model import AptSource
from stackbuild.store.fetch import FetchRequest, fetch_all
from stackbuild.store.http import HttpClient
from stackbuild.store.store import Store

_ARMOR = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"


@dataclass(frozen=True)
class AptKey:
    """A further repository with its checked key.

    Attributes:
        path: The key's file in the store.
        armored: True for ASCII armor, which apt takes as ``.asc``; else ``.gpg``.
    """

    repository: AptRepository
    path: Path
    armored: bool


def apt_source_repository(source: AptSource) -> AptRepository:
    """The repository that an entry of ``apt-sources`` means."""
    components = () if source.suite.endswith("/") else source.components
    return AptRepository(source.uri.rstrip("/"), source.suite, components)


def fetch_apt_keys(
    sources: Iterable[AptSource], store: Store, *, http: HttpClient | None = None, observer: Observer
) -> tuple[AptKey, ...]:
    """Fetch the keys of ``apt-sources``; what the store has is not fetched.

    Raises:
        LockError: ``apt-key-mismatch``, showing both hashes; ``apt-key-missing``.
        NotJudgedError: The server is down or limiting.
    """
    keys = []
    for source in sources:
        path = store.blob(source.key_sha256)
        if path is None:
            url = source.key_url or f"{source.uri.rstrip('/')}/key.asc"
            request = FetchRequest(f"key of {source.uri}", (url,), not_found_code="apt-key-missing")
            path = fetch_all([request], store, observer=observer, http=http)[request.name]
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != source.key_sha256:
                raise LockError(
                    f"the signing key of {source.uri} is not the one that the spec names",
                    code="apt-key-mismatch",
                    where=url,
                    detail=f"spec:  sha256 {source.key_sha256}\nfound: sha256 {found}",
                    do="Ask the repository's owner which is right before you change 'key-sha256'.",
                )
        armored = _ARMOR in path.read_bytes()
        keys.append(AptKey(apt_source_repository(source), path, armored))
    return tuple(keys)
