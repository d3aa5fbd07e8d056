"""Writing to the distribution's real registry: blobs, manifests, tags, referrers; also when it misbehaves."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.referrers import attach, attached_content, list_referrers, referrers_tag
from stackbuild.registry.writer import RegistryWriter
from tests.support.loopback import Misbehaviour, Response
from tests.support.registry import Registry, RegistryFront

CHUNK = 1 << 18
# Of the password "secret", by bcrypt with the least cost.
HTPASSWD = "me:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def writer(waits: list[float]) -> Iterator[RegistryWriter]:
    with RegistryClient(sleep=waits.append) as client:
        yield RegistryWriter(client, chunk=CHUNK)


@pytest.fixture
def front(registry: Registry) -> Iterator[RegistryFront]:
    with RegistryFront(registry) as made:
        yield made


def repository(registry: Registry | RegistryFront, name: str = "app") -> str:
    return f"{registry.address}/test-writer/{name}-{uuid.uuid4().hex[:8]}"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def put_file(writer: RegistryWriter, image: str, content: bytes) -> str:
    digest = digest_of(content)
    writer.put_file(image, lambda: io.BytesIO(content), digest, len(content))
    return digest


def put_manifest(writer: RegistryWriter, image: str, *tags: str) -> dict[str, Any]:
    config = writer.put_bytes(image, b'{"os":"linux","architecture":"amd64"}')
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
        "layers": [],
        "annotations": {"a": "b"},
    }
    body = json.dumps(manifest).encode()
    for tag in tags:
        writer.put_manifest(image, tag, body, OCI_MANIFEST)
    return {"mediaType": OCI_MANIFEST, "digest": digest_of(body), "size": len(body)}


def test_small_and_large_blobs_arrive_whole_and_are_sent_once(
    front: RegistryFront, writer: RegistryWriter
) -> None:
    image = repository(front)
    for content in (b"small", os.urandom(5 * CHUNK // 2)):
        digest = put_file(writer, image, content)
        assert b"".join(writer.client.blob(image, digest)) == content
        sent = len(front.server.requested("uploads"))
        put_file(writer, image, content)
        assert len(front.server.requested("uploads")) == sent


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_an_upload_that_breaks_off_still_arrives(
    front: RegistryFront, writer: RegistryWriter, lost: str
) -> None:
    image, content = repository(front), os.urandom(5 * CHUNK // 2)
    calls: list[str] = []
    passed_on = front._pass_on

    def lossy(request: Any) -> Any:
        if request.method != "PATCH":
            return passed_on(request)
        calls.append(request.headers["Content-Range"].split("-")[0])
        if len(calls) != 2:
            return passed_on(request)
        response = passed_on(request) if lost == "answer" else None
        return Response(502) if response is None or response.status == 202 else response

    front.server._answer = lossy
    digest = put_file(writer, image, content)
    assert b"".join(writer.client.blob(image, digest)) == content
    if lost == "request":
        # It went on where it had stopped. This registry cannot tell how much of a lost answer's chunk it took.
        assert calls == ["0", str(CHUNK), str(CHUNK), str(2 * CHUNK)]


def test_a_registry_without_chunks_gets_the_blob_in_one_piece(
    front: RegistryFront, writer: RegistryWriter
) -> None:
    image, content = repository(front), os.urandom(3 * CHUNK // 2)
    passed_on = front._pass_on
    front.server._answer = lambda request: Response(405) if request.method == "PATCH" else passed_on(request)
    digest = put_file(writer, image, content)
    assert b"".join(writer.client.blob(image, digest)) == content


def test_a_blob_is_mounted_within_a_registry_only(registry: Registry, writer: RegistryWriter) -> None:
    source, target = repository(registry), repository(registry)
    digest = put_file(writer, source, b"shared")
    assert not writer.has_blob(target, digest)
    assert writer.mount(target, digest, source=source)
    assert writer.has_blob(target, digest)
    assert not writer.mount(target, digest_of(b"no such blob"), source=source)
    assert not writer.mount(target, digest, source="registry.example/other")


def test_retry_after_is_honoured_for_writes_too(
    front: RegistryFront, writer: RegistryWriter, waits: list[float]
) -> None:
    image = repository(front)
    front.server.misbehave("manifests/v1$", Misbehaviour(status=429, headers={"Retry-After": "7"}, times=1))
    front.server.misbehave("uploads/.+", Misbehaviour(status=429, headers={"Retry-After": "5"}, times=1))
    put_manifest(writer, image, "v1")
    assert writer.client.tags(image) == ("v1",)
    assert [wait for wait in waits if wait >= 5] == [5, 7]
    front.server.misbehave("manifests/v2$", Misbehaviour(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(NotJudgedError) as caught:
        put_manifest(writer, image, "v2")
    assert caught.value.code == "registry-rate-limited"


def test_a_tag_is_deleted_and_what_it_named_stays(registry: Registry, writer: RegistryWriter) -> None:
    image = repository(registry)
    manifest = put_manifest(writer, image, "staging", "latest")
    assert writer.delete_tag(image, "staging")
    assert writer.client.tags(image) == ("latest",)
    assert writer.client.resolve(image, "latest").index_digest == manifest["digest"]
    assert writer.delete_tag(image, "staging"), "gone already"


def test_referrers_are_kept_by_the_tag_schema_where_there_is_no_api(
    registry: Registry, writer: RegistryWriter
) -> None:
    image = repository(registry)
    subject = put_manifest(writer, image, "v1")
    assert list_referrers(writer.client, image, subject["digest"]) == ()

    def add(number: int) -> str:
        return attach(
            writer,
            image,
            subject,
            artifact_type="application/vnd.example.report",
            content=f"report {number}".encode(),
            media_type="text/plain",
            name="document",
            annotations={"number": str(number)},
        )

    first = add(1)
    assert add(1) == first
    # Two jobs that attach at the same time: none is lost.
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(add, (2, 3)))
    found = list_referrers(writer.client, image, subject["digest"])
    assert sorted(referrer.annotations["number"] for referrer in found) == ["1", "2", "3"]
    assert {attached_content(writer.client, image, referrer) for referrer in found} == {
        b"report 1",
        b"report 2",
        b"report 3",
    }
    assert referrers_tag(subject["digest"]) in writer.client.tags(image)
    entry = next(referrer for referrer in found if referrer.digest == first)
    assert writer.client.manifest(image, entry.digest)["subject"] == subject


def test_a_password_from_docker_s_configuration_is_used(tmp_path: Path) -> None:
    with Registry(tmp_path / "registry", htpasswd=HTPASSWD) as private:
        image = repository(private)
        config = tmp_path / "config.json"
        config.write_text("{}")
        with RegistryClient(docker_config=str(config)) as client, pytest.raises(NotJudgedError) as caught:
            put_manifest(RegistryWriter(client), image, "v1")
        assert caught.value.code == "registry-denied"
        auth = base64.b64encode(b"me:secret").decode()
        config.write_text(json.dumps({"auths": {private.address: {"auth": auth}}}))
        with RegistryClient(docker_config=str(config)) as client:
            writer = RegistryWriter(client)
            put_manifest(writer, image, "v1")
            assert client.tags(image) == ("v1",)


def test_a_manifest_whose_layers_are_missing_is_the_registry_s_refusal(
    registry: Registry, writer: RegistryWriter
) -> None:
    image = repository(registry)
    config = writer.put_bytes(image, b"{}")
    layer = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest_of(b"x"), "size": 1}
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": "a/b", **config},
        "layers": [layer],
    }
    with pytest.raises(LockError) as caught:
        writer.put_manifest(image, "v1", json.dumps(manifest).encode(), OCI_MANIFEST)
    assert caught.value.code == "registry-failed"
    assert "MANIFEST_BLOB_UNKNOWN" in str(caught.value)
