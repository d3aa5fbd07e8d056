"""A registry of one repository in memory, on loopback: speaks the distribution API, tokens included."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stackbuild.registry.documents import OCI_INDEX, OCI_MANIFEST
from tests.support.loopback import LoopbackServer, Request, Response


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _error(status: int, code: str, **headers: str) -> Response:
    return Response(status, json.dumps({"errors": [{"code": code}]}).encode(), headers)


class MemoryRegistry:
    """A repository ``nvidia/cuda`` in memory."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[bytes, str]] = {}
        self.blobs: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.password: str | None = None
        self.basic = False
        self.scopes: list[str] = []
        self.server = LoopbackServer(self.answer)

    def add_document(self, document: dict[str, Any], media_type: str, tag: str | None = None) -> str:
        body = json.dumps({"mediaType": media_type, **document}).encode()
        digest = digest_of(body)
        self.documents[digest] = (body, media_type)
        if tag:
            self.tags[tag] = digest
        return digest

    def add_image(
        self,
        architecture: str,
        tag: str | None = None,
        media_type: str = OCI_MANIFEST,
        **configuration: object,
    ) -> str:
        document = {"os": "linux", "architecture": architecture, "rootfs": {"diff_ids": []}, **configuration}
        config = json.dumps(document).encode()
        self.blobs[digest_of(config)] = config
        return self.add_document(
            {"schemaVersion": 2, "config": {"digest": digest_of(config), "size": len(config)}, "layers": []},
            media_type,
            tag,
        )

    def add_index(self, tag: str, **children: str) -> str:
        manifests = [
            {"digest": digest, "platform": {"os": "linux", "architecture": architecture}}
            for architecture, digest in children.items()
        ]
        attestation = {"digest": digest_of(b"x"), "platform": {"os": "unknown", "architecture": "unknown"}}
        return self.add_document({"schemaVersion": 2, "manifests": [*manifests, attestation]}, OCI_INDEX, tag)

    def answer(self, request: Request) -> Response:
        url = urlsplit(request.path)
        if url.path == "/token":
            return self._token(request, parse_qs(url.query))
        if self.password is not None and not self._is_authorized(request):
            challenge = (
                'Basic realm="registry"'
                if self.basic
                else f'Bearer realm="{self.server.url}/token",service="here",scope="repository:nvidia/cuda:pull"'
            )
            return _error(401, "UNAUTHORIZED", **{"WWW-Authenticate": challenge})
        prefix = "/v2/nvidia/cuda/"
        if not url.path.startswith(prefix):
            return _error(404, "NAME_UNKNOWN")
        kind, _, name = url.path.removeprefix(prefix).partition("/")
        if kind == "manifests":
            found = self.documents.get(self.tags.get(name, name))
            return (
                Response(200, found[0], {"Content-Type": found[1]})
                if found
                else _error(404, "MANIFEST_UNKNOWN")
            )
        if kind == "blobs":
            blob = self.blobs.get(name)
            return Response(200, blob) if blob is not None else _error(404, "BLOB_UNKNOWN")
        return self._tag_page(parse_qs(url.query))

    def _tag_page(self, query: dict[str, list[str]]) -> Response:
        tags = sorted(self.tags)
        start = int(query.get("start", ["0"])[0])
        page = tags[start : start + 2]
        more = (
            {"Link": f'</v2/nvidia/cuda/tags/list?start={start + 2}>; rel="next"'}
            if tags[start + 2 :]
            else {}
        )
        return Response(200, json.dumps({"name": "nvidia/cuda", "tags": page}).encode(), more)

    def _is_authorized(self, request: Request) -> bool:
        sent = request.headers.get("Authorization", "")
        if self.basic:
            return sent == "Basic " + base64.b64encode(f"me:{self.password}".encode()).decode()
        return sent == "Bearer good-token"

    def _token(self, request: Request, query: dict[str, list[str]]) -> Response:
        self.scopes.extend(query["scope"])
        expected = "Basic " + base64.b64encode(f"me:{self.password}".encode()).decode()
        if request.headers.get("Authorization") != expected:
            return Response(401)
        return Response(200, b'{"token": "good-token"}')
