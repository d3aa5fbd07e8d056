"""Writing to a registry: blobs, manifests, tags.

OCI distribution specification 1.1: "Pushing blobs", "Pushing manifests", "Content management".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import IO, Any
from urllib.parse import urljoin

import requests

from stackbuild.digests import digest_of, short_digest
from stackbuild.errors import LockError, NotJudgedError
from stackbuild.progress import Observer, SilentObserver
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.reference import Endpoint

EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY_JSON = b"{}"
# What a tag names that could not be deleted any further.
DELETED_TYPE = "application/vnd.stackbuild.deleted.v1+json"
_OCTETS = "application/octet-stream"
_SESSIONS = 3
_BROKEN_CHUNKS = 4
_CHUNK = 16 << 20


class RegistryWriter:
    """Writes to the registries that a client reads.

    Args:
        client: Its transport and tokens are shared. For a repository that is written, a client without mirrors:
            a mirror only reads.
        observer: Told of uploads.
        chunk: Bytes of one part of a large upload.
    """

    def __init__(
        self, client: RegistryClient, observer: Observer | None = None, *, chunk: int = _CHUNK
    ) -> None:
        self.client = client
        self._chunk = chunk
        self._transport = client.transport
        self._observer = observer or SilentObserver()

    # blobs --------------------------------------------------------------------

    def has_blob(self, image: str, digest: str) -> bool:
        """True when the repository has the blob."""
        answer = self._transport.send(self.client.endpoint(image), "HEAD", f"blobs/{digest}")
        return answer.status_code == 200

    def put_bytes(self, image: str, content: bytes) -> dict[str, Any]:
        """Store a small blob; returns digest and size as a descriptor has them."""
        digest = digest_of(content)
        if not self.has_blob(image, digest):
            endpoint = self.client.endpoint(image)
            self._in_sessions(
                endpoint, digest, lambda: self._put_whole(endpoint, self._session(endpoint), digest, content)
            )
        return {"digest": digest, "size": len(content)}

    def put_file(self, image: str, opened: Callable[[], IO[bytes]], digest: str, size: int) -> None:
        """Store a blob from a file, unless the repository has it; what broke off goes on where it stopped.

        Args:
            image: The repository.
            opened: Opens the file anew.
            digest: Its ``sha256:…``.
            size: Bytes.

        Raises:
            NotJudgedError: As ``RegistryClient.resolve``.
            LockError: ``registry-failed``: the registry does not take it.
        """
        if self.has_blob(image, digest):
            return
        endpoint = self.client.endpoint(image)

        def send() -> None:
            session = self._session(endpoint)
            if size <= self._chunk:
                self._put_whole(endpoint, session, digest, opened)
                return
            try:
                session = self._put_chunks(endpoint, session, opened, digest, size)
            except LockError:
                # Some registries take a blob in one piece only.
                self._put_whole(endpoint, self._session(endpoint), digest, opened)
                return
            self._put_whole(endpoint, session, digest, b"")

        self._in_sessions(endpoint, digest, send)

    def mount(self, image: str, digest: str, *, source: str) -> bool:
        """Take a blob over from another repository of the same registry; False when the registry would not."""
        endpoint, from_ = self.client.endpoint(image), self.client.endpoint(source)
        if (endpoint.scheme, endpoint.host) != (from_.scheme, from_.host):
            return False
        answer = self._transport.send(
            endpoint, "POST", f"blobs/uploads/?mount={digest}&from={from_.name}", answers=(201, 202)
        )
        if answer.status_code == 202:
            # The registry opened an upload in place of mounting; end it, so that it need not expire.
            self._transport.send(
                endpoint, "DELETE", _location(endpoint, answer), answers=(204, 200, 202, 404, 405)
            )
        return answer.status_code == 201

    def _session(self, endpoint: Endpoint) -> str:
        answer = self._transport.send(endpoint, "POST", "blobs/uploads/", answers=(202,))
        return _location(endpoint, answer)

    def _put_whole(
        self, endpoint: Endpoint, session: str, digest: str, body: bytes | Callable[[], IO[bytes]]
    ) -> None:
        glue = "&" if "?" in session else "?"
        self._transport.send(
            endpoint,
            "PUT",
            f"{session}{glue}digest={digest}",
            {"Content-Type": _OCTETS},
            body=body,
            answers=(201, 204),
            repeatable=False,
        )

    def _put_chunks(
        self, endpoint: Endpoint, session: str, opened: Callable[[], IO[bytes]], digest: str, size: int
    ) -> str:
        """Send a file in chunks; returns where the upload is closed."""
        offset, broken = 0, 0
        with opened() as stream:
            while offset < size:
                stream.seek(offset)
                chunk = stream.read(self._chunk)
                headers = {"Content-Type": _OCTETS, "Content-Range": f"{offset}-{offset + len(chunk) - 1}"}
                try:
                    answer = self._transport.send(
                        endpoint,
                        "PATCH",
                        session,
                        headers,
                        body=chunk,
                        answers=(202, 416),
                        repeatable=False,
                    )
                    if answer.status_code == 202:
                        session, offset = _location(endpoint, answer), offset + len(chunk)
                        self._observer.advance(digest[7:19], offset, size)
                        continue
                except NotJudgedError as error:
                    if error.code != "registry-unreachable":
                        raise
                    if broken >= _BROKEN_CHUNKS:
                        raise
                broken += 1
                if broken > _BROKEN_CHUNKS:
                    raise LockError(
                        "the registry takes no part of an upload",
                        code="registry-failed",
                        where=endpoint.reference,
                    )
                answer = self._transport.send(endpoint, "GET", session, answers=(204,))
                session = _location(endpoint, answer)
                offset = _received(answer)
        return session

    def _in_sessions(self, endpoint: Endpoint, digest: str, send: Callable[[], None]) -> None:
        """Upload, with a new session when one breaks."""
        for attempt in range(_SESSIONS):
            try:
                send()
            except (LockError, NotJudgedError) as error:
                last = attempt + 1 == _SESSIONS
                if last or error.code not in ("registry-failed", "registry-unreachable"):
                    raise
                self._observer.note(
                    f"upload of {short_digest(digest)} to {endpoint.reference} broke off; again"
                )
            else:
                return

    # manifests and tags -------------------------------------------------------

    def put_manifest(
        self, image: str, reference: str, content: bytes, media_type: str
    ) -> tuple[str, Mapping[str, str]]:
        """Store a manifest or index under a tag or its digest.

        Returns:
            Its digest, and the answer's headers (``OCI-Subject`` tells that the registry keeps referrers).

        Raises:
            NotJudgedError: As ``RegistryClient.resolve``, and ``transfer-corrupt``.
            LockError: ``registry-failed``: for example a blob it names is not there.
        """
        endpoint, digest = self.client.endpoint(image), digest_of(content)
        answer = self._transport.send(
            endpoint,
            "PUT",
            f"manifests/{reference}",
            {"Content-Type": media_type},
            body=content,
            answers=(201, 200, 202),
        )
        stored = answer.headers.get("Docker-Content-Digest", digest)
        if stored != digest:
            raise NotJudgedError(
                f"the registry stored {stored} for {digest}",
                code="transfer-corrupt",
                where=f"{endpoint.reference}:{reference}",
                do="Something between here and the registry changes what passes; try again.",
            )
        return digest, answer.headers

    def delete_tag(self, image: str, tag: str) -> bool:
        """Delete a tag and leave what it names; False where the registry deletes nothing.

        Registries before the specification's 1.1 delete by digest only, and with a manifest all its tags; some
        later ones delete the manifest when they are asked for the tag. So the tag is first given a small manifest
        of its own, which nothing else names, and that one is deleted.
        """
        config = {"mediaType": EMPTY_TYPE, **self.put_bytes(image, EMPTY_JSON)}
        stand_in = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "artifactType": DELETED_TYPE,
            "config": config,
            "layers": [config],
            "annotations": {"io.stackbuild.deleted": tag},
        }
        content = json.dumps(stand_in).encode()
        there = self.client.document(image, tag)
        if there is None:
            return True
        if there[0] != content:
            self.put_manifest(image, tag, content, OCI_MANIFEST)
        return self._delete(image, digest_of(content))

    def _delete(self, image: str, reference: str) -> bool:
        answer = self._transport.send(
            self.client.endpoint(image),
            "DELETE",
            f"manifests/{reference}",
            answers=(202, 200, 204, 404, 405, 400, 401, 403),
        )
        return answer.status_code in (200, 202, 204)


def _location(endpoint: Endpoint, answer: requests.Response) -> str:
    location = answer.headers.get("Location", "")
    if not location:
        raise LockError(
            "the registry opened an upload and does not say where",
            code="registry-failed",
            where=endpoint.reference,
        )
    return urljoin(answer.url, location)


def _received(answer: requests.Response) -> int:
    """How many bytes an upload has, from ``Range: 0-N``; a registry says 0-0 of one byte and of none."""
    last = answer.headers.get("Range", "").rpartition("-")[2]
    return int(last) + 1 if last.isdigit() and int(last) > 0 else 0
