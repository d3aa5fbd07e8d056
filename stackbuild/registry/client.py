"""Reading images from a registry: tags, manifests, indexes, configurations and blobs.

OCI distribution specification 1.1 and OCI image specification 1.1; Docker's media types of the same things.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin

import requests

from stackbuild.digests import digest_of
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.registry.answers import RegistryAnswers
from stackbuild.registry.documents import (
    DOCKER_INDEX,
    DOCKER_MANIFEST,
    OCI_INDEX,
    OCI_MANIFEST,
    ResolvedImage,
    not_its_answer,
    parsed,
    platforms_of,
)
from stackbuild.registry.near_tags import near_tags
from stackbuild.registry.reference import Endpoint, endpoint_of, parse_repository
from stackbuild.registry.transport import RegistryTransport, error_codes
from stackbuild.sizes import size_text
from stackbuild.store.outages import Outages

_ACCEPT = ", ".join((OCI_INDEX, DOCKER_INDEX, OCI_MANIFEST, DOCKER_MANIFEST))
_CHUNK = 1 << 20
# The distribution specification lets registries refuse manifests above 4 MiB; configurations are smaller.
_LARGEST_DOCUMENT = 8_000_000
_TAG_PAGES = 50


class RegistryClient:
    """Reads registries, through the site's mirrors. A context manager.

    Args:
        mirrors: Registry → mirror (``SiteConfig.registries``).
        ca_bundle: Certificates to trust in place of the system's.
        docker_config: Docker's config.json; None for its usual place.
        sleep: How to wait between tries; None for really waiting.
        outages: Registries that are asked no more; None to ask each time.
        answers: What others have asked for already, and what this one asks for; None to ask each time.
    """

    def __init__(
        self,
        mirrors: Mapping[str, str] | None = None,
        *,
        ca_bundle: Path | None = None,
        docker_config: str | None = None,
        sleep: Callable[[float], None] | None = None,
        outages: Outages | None = None,
        answers: RegistryAnswers | None = None,
    ) -> None:
        self._answers = answers
        self._mirrors = dict(mirrors or {})
        waiting = {} if sleep is None else {"sleep": sleep}
        self._transport = RegistryTransport(
            ca_bundle=ca_bundle, docker_config=docker_config, outages=outages, **waiting
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    @property
    def transport(self) -> RegistryTransport:
        """What requests go through; whoever writes shares its tokens."""
        return self._transport

    def endpoint(self, image: str) -> Endpoint:
        """Where the image's repository is read."""
        return endpoint_of(parse_repository(image), self._mirrors)

    def resolve(
        self,
        image: str,
        tag: str,
        *,
        locked_digest: str | None = None,
        known_as: str = "its locked digest",
    ) -> ResolvedImage:
        """Find what a tag stands for now.

        Args:
            image: Repository, for example ``nvidia/cuda``.
            tag: Tag.
            locked_digest: The digest that the tag had when it was locked, if it was.
            known_as: What a person knows that digest as, where no lock has it.

        Raises:
            LockError: ``tag-removed`` when the tag was locked and is gone, ``no-such-tag`` (both with near
                tags), ``no-such-repository``.
            NotJudgedError: ``registry-rate-limited``, ``registry-denied``, ``registry-unreachable``,
                ``transfer-corrupt``.
        """
        endpoint = self.endpoint(image)
        found = self._document(endpoint, f"manifests/{tag}", {"Accept": _ACCEPT})
        if isinstance(found, requests.Response):
            self._refuse_unknown_repository(endpoint, image, found)
            raise self._no_tag(image, tag, locked_digest, known_as)
        body, content_type = found
        return self._resolved(image, body, content_type)

    def resolve_digest(self, image: str, digest: str) -> ResolvedImage | None:
        """What a digest stands for; None when the repository no longer has it."""
        endpoint = self.endpoint(image)
        found = self._document(endpoint, f"manifests/{digest}", {"Accept": _ACCEPT}, digest)
        if isinstance(found, requests.Response):
            return None
        return self._resolved(image, *found)

    def document(self, image: str, reference: str) -> tuple[bytes, str] | None:
        """The bytes and media type of a manifest or index, by tag or digest; None when there is none.

        Raises:
            NotJudgedError: As ``resolve``.
        """
        digest = reference if reference.startswith("sha256:") else None
        endpoint = self.endpoint(image)
        found = self._document(endpoint, f"manifests/{reference}", {"Accept": _ACCEPT}, digest)
        if isinstance(found, requests.Response):
            return None
        parsed(endpoint, found[0])
        return found

    def manifest(self, image: str, digest: str) -> dict[str, Any]:
        """A manifest or index, checked against its digest.

        Raises:
            LockError: ``digest-gone``.
            NotJudgedError: As ``resolve``.
        """
        return self._json(image, f"manifests/{digest}", {"Accept": _ACCEPT}, digest)

    def config(self, image: str, digest: str) -> dict[str, Any]:
        """An image's configuration, checked against its digest. Raises as ``manifest``."""
        return self._json(image, f"blobs/{digest}", {}, digest)

    def blob(self, image: str, digest: str) -> Iterator[bytes]:
        """A blob's content; the last step of the iteration fails when it has not that digest.

        Raises:
            LockError: ``digest-gone``.
            NotJudgedError: ``transfer-corrupt``, and as ``resolve``.
        """
        endpoint = self.endpoint(image)
        response = self._transport.get(endpoint, f"blobs/{digest}", stream=True)
        with response:
            if response.status_code == 404:
                raise _digest_gone(endpoint, digest)
            hashed = hashlib.sha256()
            for chunk in _chunks(endpoint, response):
                hashed.update(chunk)
                yield chunk
        _require_digest(endpoint, digest, f"sha256:{hashed.hexdigest()}")

    def tags(self, image: str) -> tuple[str, ...]:
        """The repository's tags, in the registry's order. Raises as ``resolve``."""
        endpoint = self.endpoint(image)
        tags: list[str] = []
        path = "tags/list?n=1000"
        for _ in range(_TAG_PAGES):
            response = self._transport.get(endpoint, path)
            if response.status_code == 404:
                self._refuse_unknown_repository(endpoint, image, response)
                return ()
            tags.extend(parsed(endpoint, response.content).get("tags") or ())
            following = response.links.get("next", {}).get("url")
            if not following:
                break
            path = urljoin(response.url, following)
        return tuple(tags)

    def _resolved(self, image: str, body: bytes, content_type: str) -> ResolvedImage:
        endpoint = self.endpoint(image)
        document = parsed(endpoint, body)
        digest = digest_of(body)
        media_type = str(document.get("mediaType") or content_type)
        if not {"manifests", "config"} & set(document) and document.get("schemaVersion") != 1:
            raise not_its_answer(endpoint, "it is neither a manifest nor an index")
        if "manifests" in document:
            return ResolvedImage(
                digest,
                media_type if media_type == DOCKER_INDEX else OCI_INDEX,
                platforms_of(endpoint, document),
            )
        if "config" not in document:
            raise LockError(
                "the registry has this image only in Docker's first manifest format, which has no digest "
                "of its configuration",
                code="manifest-too-old",
                where=f"{endpoint.reference}@{digest}",
                do="Choose a newer tag, or push the image again with a current engine.",
            )
        try:
            config_digest = str(document["config"]["digest"])
        except (KeyError, TypeError) as error:
            raise not_its_answer(endpoint, "its manifest names no configuration") from error
        config = self.config(image, config_digest)
        platform = f"{config.get('os', 'linux')}/{config.get('architecture', '')}"
        return ResolvedImage(
            digest, media_type if media_type == DOCKER_MANIFEST else OCI_MANIFEST, {platform: digest}
        )

    def _document(
        self, endpoint: Endpoint, path: str, headers: Mapping[str, str], digest: str | None = None
    ) -> tuple[bytes, str] | requests.Response:
        """A small document and its content type, checked; or the registry's 404."""
        asked = f"{endpoint.reference} {path}"
        known = self._answers.get(asked) if self._answers is not None else None
        if known is not None:
            return known
        response = self._transport.get(endpoint, path, headers, stream=True)
        with response:
            if response.status_code == 404:
                _ = response.content
                return response
            body = bytearray()
            for chunk in _chunks(endpoint, response):
                body += chunk
                if len(body) > _LARGEST_DOCUMENT:
                    raise LockError(
                        f"the registry's answer is larger than {size_text(_LARGEST_DOCUMENT)}",
                        code="registry-failed",
                        where=f"{endpoint.reference} {path}",
                        do="Check the image's name; this is no manifest.",
                    )
        expected = digest or response.headers.get("Docker-Content-Digest", "")
        if expected.startswith("sha256:"):
            _require_digest(endpoint, expected, digest_of(body))
        document = bytes(body), response.headers.get("Content-Type", "").partition(";")[0].strip()
        if self._answers is not None:
            self._answers.put(asked, document)
        return document

    def _json(self, image: str, path: str, headers: Mapping[str, str], digest: str) -> dict[str, Any]:
        endpoint = self.endpoint(image)
        found = self._document(endpoint, path, headers, digest)
        if isinstance(found, requests.Response):
            raise _digest_gone(endpoint, digest)
        return parsed(endpoint, found[0])

    def _refuse_unknown_repository(self, endpoint: Endpoint, image: str, response: requests.Response) -> None:
        if "NAME_UNKNOWN" in error_codes(response):
            raise LockError(
                f"the registry {endpoint.host} has no repository {endpoint.name}",
                code="no-such-repository",
                where=image,
                do="Check its name (a spec has it under 'base.image'), and that your login may read it.",
            )

    def _no_tag(self, image: str, tag: str, locked_digest: str | None, known_as: str) -> LockError:
        near = near_tags(tag, self._tags_if_any(image, locked=locked_digest is not None))
        suggestion = (
            f"Choose a tag that exists, such as {', '.join(near)}."
            if near
            else (f"Choose a tag from the list of {image}.")
        )
        if locked_digest is None:
            return LockError(
                f"{image} has no tag {tag}", code="no-such-tag", where=f"{image}:{tag}", do=suggestion
            )
        if self.resolve_digest(image, locked_digest) is not None:
            what = f"the tag {tag} has been removed from {image}; {known_as} can still be fetched"
            do = f"Copy {locked_digest} to a registry of your own before it goes too. {suggestion}"
        else:
            what = f"the tag {tag} has been removed from {image}, and so has {known_as} {locked_digest}"
            do = suggestion
        return LockError(what, code="tag-removed", where=f"{image}:{tag}", do=do)

    def _tags_if_any(self, image: str, *, locked: bool) -> tuple[str, ...]:
        # The list only serves the suggestion; that the tag is missing is known already. Some registries tell only
        # here that it is the repository that is missing.
        try:
            return self.tags(image)
        except LockError as error:
            if error.code == "no-such-repository" and not locked:
                raise
            return ()
        except NotJudgedError:
            return ()


def _chunks(endpoint: Endpoint, response: requests.Response) -> Iterator[bytes]:
    try:
        yield from response.iter_content(_CHUNK)
    except requests.RequestException as error:
        raise NotJudgedError(
            "the registry's answer broke off",
            code="registry-unreachable",
            where=endpoint.reference,
            do="Try again.",
            detail=str(error),
        ) from error


def _require_digest(endpoint: Endpoint, expected: str, actual: str) -> None:
    if expected != actual:
        raise NotJudgedError(
            f"the registry sent content of digest {actual} for {expected}",
            code="transfer-corrupt",
            where=endpoint.reference,
            do="Try again; if it stays so, the mirror or proxy changes what it passes on.",
        )


def _digest_gone(endpoint: Endpoint, digest: str) -> LockError:
    return LockError(
        f"the registry no longer has {digest}",
        code="digest-gone",
        where=endpoint.reference,
        do="Lock again, or map the registry to a mirror that kept it in stackbuild.toml.",
    )
