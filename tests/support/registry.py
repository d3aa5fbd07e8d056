"""An image registry: the distribution's docker-registry as a real process, and a front that misbehaves."""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.loopback import LoopbackServer, Misbehaviour, Request, Response

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"

_PASSED_BACK = frozenset(
    ("content-type", "docker-content-digest", "location", "link", "www-authenticate", "range")
)

_CONFIGURATION = """\
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {root}}}
  delete: {{enabled: true}}
http:
  addr: {address}
"""
_HTPASSWD = """\
auth:
  htpasswd: {{realm: tests, path: {path}}}
"""


class Registry:
    """A real registry on a free loopback port; a context manager.

    Args:
        directory: Where it keeps its blobs, its configuration and its log.
        htpasswd: A line of an htpasswd file (bcrypt); it then asks for that user and password.
    """

    def __init__(self, directory: Path, *, htpasswd: str | None = None) -> None:
        self._directory = directory
        self._htpasswd = htpasswd
        # Kept, and never listening, so that nobody else is given the port before the registry listens there, nor
        # while it is down: with this option, which Go's listeners set as well, that is no hindrance to it.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port: int = self._reserved.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``, as an image reference starts; an engine takes 127.0.0.0/8 for insecure."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        program = shutil.which("docker-registry")
        assert program, "docker-registry is not installed; `make test` installs it"
        self._directory.mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "config.yml"
        text = _CONFIGURATION.format(root=json.dumps(str(self._directory / "data")), address=self.address)
        if self._htpasswd is not None:
            users = self._directory / "htpasswd"
            users.write_text(self._htpasswd + "\n")
            text += _HTPASSWD.format(path=json.dumps(str(users)))
        configuration.write_text(text)
        with (self._directory / "registry.log").open("wb") as log:
            self._process = subprocess.Popen(
                [program, "serve", str(configuration)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + 120
        while True:
            if self._answers():
                return self
            log_text = (self._directory / "registry.log").read_text()
            assert self._process.poll() is None, f"docker-registry ended: {log_text}"
            assert time.monotonic() < deadline, f"docker-registry does not answer: {log_text}"
            time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._reserved.close()

    def close(self) -> None:
        """End the process; later connections are refused."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=100)
            self._process = None

    def _answers(self) -> bool:
        try:
            return self.request("GET", "/v2/")[0] in (200, 401)
        except OSError:
            return False

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One HTTP request; returns status, headers (lower-case names) and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return response.status, named, response.read()
        finally:
            connection.close()

    def put_blob(self, repository: str, content: bytes) -> str:
        """Store a blob; returns its digest."""
        digest = digest_of(content)
        status, headers, body = self.request("POST", f"/v2/{repository}/blobs/uploads/")
        assert status == 202, body
        location = headers["location"].split(self.address, 1)[-1]
        glue = "&" if "?" in location else "?"
        status, _, body = self.request(
            "PUT",
            f"{location}{glue}digest={digest}",
            content,
            {"Content-Type": "application/octet-stream"},
        )
        assert status == 201, body
        return digest

    def put_manifest(self, repository: str, reference: str, manifest: bytes, media_type: str) -> str:
        """Store a manifest or an index under a tag or digest; returns its digest."""
        path = f"/v2/{repository}/manifests/{reference}"
        status, _, body = self.request("PUT", path, manifest, {"Content-Type": media_type})
        assert status == 201, body
        return digest_of(manifest)

    def put_image(self, repository: str, config: bytes, layers: list[bytes]) -> tuple[str, int]:
        """Store one platform's image of gzipped layers; returns its manifest's digest and size."""
        manifest = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer) for layer in layers],
        }
        for blob in (config, *layers):
            self.put_blob(repository, blob)
        content = json.dumps(manifest).encode()
        return self.put_manifest(repository, digest_of(content), content, OCI_MANIFEST), len(content)

    def put_index(self, repository: str, tag: str, children: dict[str, tuple[str, int]]) -> str:
        """Store an image index under a tag.

        Args:
            repository: For example ``nvidia/cuda``.
            tag: The tag.
            children: Platform (``linux/amd64``) to the digest and size of its manifest.
        """
        entries = []
        for platform, (digest, size) in sorted(children.items()):
            system, architecture = platform.split("/")
            entries.append(
                {
                    "mediaType": OCI_MANIFEST,
                    "digest": digest,
                    "size": size,
                    "platform": {"os": system, "architecture": architecture},
                }
            )
        index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
        return self.put_manifest(repository, tag, json.dumps(index).encode(), OCI_INDEX)


class RegistryFront:
    """Passes requests on to a registry, unless told to misbehave on some paths; a context manager."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.server = LoopbackServer(self._pass_on)

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT`` of the front."""
        return f"127.0.0.1:{self.server.port}"

    def misbehave(self, path_pattern: str, misbehaviour: Misbehaviour) -> None:
        """See ``LoopbackServer.misbehave``; paths are ``/v2/REPOSITORY/manifests/…`` and ``…/blobs/…``."""
        self.server.misbehave(path_pattern, misbehaviour)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close()

    def close(self) -> None:
        """Stop answering."""
        self.server.close()

    def _pass_on(self, request: Request) -> Response:
        passed = {
            name: value
            for name, value in request.headers.items()
            if name.lower() in ("accept", "content-type", "content-range", "authorization")
        }
        status, headers, body = self._registry.request(request.method, request.path, request.body, passed)
        kept = {
            name: value.replace(self._registry.address, self.address)
            for name, value in headers.items()
            if name in _PASSED_BACK
        }
        if request.method == "HEAD":
            kept["Content-Length"] = headers.get("content-length", "0")
        return Response(status, body, kept)


def digest_of(content: bytes) -> str:
    """``sha256:HEX`` of some bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _descriptor(media_type: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}
