"""The registry client against a server on loopback that speaks the distribution API, and misbehaves."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from stackbuild.errors import ExitCode, LockError, NotJudgedError
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import DOCKER_MANIFEST, OCI_MANIFEST
from stackbuild.store.outages import Outages
from tests.registry.memory_registry import MemoryRegistry, digest_of
from tests.support.loopback import Misbehaviour


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    made = MemoryRegistry()
    with made.server:
        yield made


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def client(registry: MemoryRegistry, waits: list[float], tmp_path: Path) -> Iterator[RegistryClient]:
    with RegistryClient(
        {"docker.io": registry.server.url},
        docker_config=str(_docker_config(tmp_path, {})),
        sleep=waits.append,
    ) as made:
        yield made


def _docker_config(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(content))
    return path


def test_an_index_resolves_to_its_platforms(registry: MemoryRegistry, client: RegistryClient) -> None:
    amd64, arm64 = registry.add_image("amd64"), registry.add_image("arm64")
    index = registry.add_index("13.0.3-base-ubuntu24.04", amd64=amd64, arm64=arm64)
    resolved = client.resolve("nvidia/cuda", "13.0.3-base-ubuntu24.04")
    assert resolved.index_digest == index
    assert resolved.is_index
    assert resolved.platforms == {"linux/amd64": amd64, "linux/arm64": arm64}


@pytest.mark.parametrize("media_type", [OCI_MANIFEST, DOCKER_MANIFEST])
def test_a_single_manifest_tells_its_platform_through_its_config(
    registry: MemoryRegistry, client: RegistryClient, media_type: str
) -> None:
    manifest = registry.add_image("arm64", "one", media_type)
    resolved = client.resolve("nvidia/cuda", "one")
    assert not resolved.is_index
    assert resolved.index_digest == manifest
    assert resolved.platforms == {"linux/arm64": manifest}


def test_config_is_read_and_checked(registry: MemoryRegistry, client: RegistryClient) -> None:
    manifest = client.manifest("nvidia/cuda", registry.add_image("amd64"))
    assert client.config("nvidia/cuda", manifest["config"]["digest"])["architecture"] == "amd64"


def test_missing_tag_names_near_ones_from_all_pages(registry: MemoryRegistry, client: RegistryClient) -> None:
    for tag in (
        "11.8.0-base-ubuntu22.04",
        "12.4.1-cudnn-devel-ubuntu22.04",
        "12.8.1-cudnn-devel-ubuntu22.04",
    ):
        registry.add_image("amd64", tag)
    with pytest.raises(LockError) as caught:
        client.resolve("nvidia/cuda", "12.8.1-cudnn8-devel-ubuntu22.04")
    assert caught.value.code == "no-such-tag"
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK
    assert "such as 12.8.1-cudnn-devel-ubuntu22.04" in caught.value.do
    assert len(registry.server.requested("12.8.1-cudnn8")) == 1  # not transient: no retry


def test_removed_tag_says_that_its_digest_still_resolves(
    registry: MemoryRegistry, client: RegistryClient
) -> None:
    digest = registry.add_image("amd64")
    with pytest.raises(LockError) as caught:
        client.resolve("nvidia/cuda", "10.2-cudnn7-runtime-ubuntu18.04", locked_digest=digest)
    assert caught.value.code == "tag-removed"
    assert "can still be fetched" in caught.value.what
    assert digest in caught.value.do


def test_removed_tag_whose_digest_is_gone_too(registry: MemoryRegistry, client: RegistryClient) -> None:
    with pytest.raises(LockError) as caught:
        client.resolve("nvidia/cuda", "gone", locked_digest=digest_of(b"gone"))
    assert caught.value.code == "tag-removed"
    assert "so has its locked digest" in caught.value.what


def test_unknown_repository_is_not_a_missing_tag(client: RegistryClient) -> None:
    with pytest.raises(LockError) as caught:
        client.resolve("nvidia/cud", "latest")
    assert caught.value.code == "no-such-repository"


def test_denied_repository_could_not_be_judged(registry: MemoryRegistry, client: RegistryClient) -> None:
    registry.server.misbehave("manifests", Misbehaviour(status=403, body=b'{"errors": [{"code": "DENIED"}]}'))
    with pytest.raises(NotJudgedError) as caught:
        client.resolve("nvidia/cuda", "latest")
    assert caught.value.code == "registry-denied"


def test_rate_limit_passes_after_waiting_as_told(
    registry: MemoryRegistry, client: RegistryClient, waits: list[float]
) -> None:
    digest = registry.add_image("amd64", "latest")
    registry.server.misbehave("manifests", Misbehaviour(status=429, headers={"Retry-After": "7"}, times=2))
    assert client.resolve("nvidia/cuda", "latest").index_digest == digest
    assert waits == [7.0, 7.0]


def test_lasting_rate_limit_is_neither_drift_nor_a_missing_tag(
    registry: MemoryRegistry, client: RegistryClient, waits: list[float]
) -> None:
    registry.server.misbehave("manifests", Misbehaviour(status=429))
    with pytest.raises(NotJudgedError) as caught:
        client.resolve("nvidia/cuda", "latest")
    assert caught.value.code == "registry-rate-limited"
    assert caught.value.exit_code is ExitCode.NOT_JUDGED
    assert waits == [1.0, 2.0, 4.0]


def test_nobody_waits_for_hours(registry: MemoryRegistry, client: RegistryClient, waits: list[float]) -> None:
    registry.server.misbehave("manifests", Misbehaviour(status=429, headers={"Retry-After": "21600"}))
    with pytest.raises(NotJudgedError) as caught:
        client.resolve("nvidia/cuda", "latest")
    assert waits == []
    assert "21600 s" in caught.value.do


def test_a_hiccup_is_retried(registry: MemoryRegistry, client: RegistryClient, waits: list[float]) -> None:
    registry.add_image("amd64", "latest")
    registry.server.misbehave("manifests", Misbehaviour(status=503, times=1))
    client.resolve("nvidia/cuda", "latest")
    assert waits == [1.0]


def test_a_registry_that_is_down(
    registry: MemoryRegistry, client: RegistryClient, waits: list[float]
) -> None:
    registry.server.close()
    with pytest.raises(NotJudgedError) as caught:
        client.resolve("nvidia/cuda", "latest")
    assert caught.value.code == "registry-unreachable"
    assert len(waits) == 3


def test_other_content_than_its_digest_is_refused(registry: MemoryRegistry, client: RegistryClient) -> None:
    digest = registry.add_image("amd64")
    registry.server.misbehave(digest, Misbehaviour(replace=b"{}"))
    with pytest.raises(NotJudgedError) as caught:
        client.manifest("nvidia/cuda", digest)
    assert caught.value.code == "transfer-corrupt"
    assert digest in caught.value.what


def test_a_blob_cut_short_is_refused(registry: MemoryRegistry, client: RegistryClient) -> None:
    data = b"layer" * 1000
    registry.blobs[digest_of(data)] = data
    assert b"".join(client.blob("nvidia/cuda", digest_of(data))) == data
    registry.server.misbehave("blobs", Misbehaviour(replace=data[:-1]))
    with pytest.raises(NotJudgedError) as caught:
        b"".join(client.blob("nvidia/cuda", digest_of(data)))
    assert caught.value.code == "transfer-corrupt"


def test_a_digest_that_is_gone(client: RegistryClient) -> None:
    with pytest.raises(LockError) as caught:
        client.manifest("nvidia/cuda", digest_of(b"nothing"))
    assert caught.value.code == "digest-gone"


def test_a_login_page_in_the_registrys_place(registry: MemoryRegistry, client: RegistryClient) -> None:
    registry.server.misbehave("manifests", Misbehaviour(replace=b"<html>Please log in</html>"))
    with pytest.raises(NotJudgedError, match="is not JSON"):
        client.resolve("nvidia/cuda", "latest")


@pytest.mark.parametrize(
    "answer",
    [
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"manifests": null}',
        b'{"manifests": [3]}',
        b'{"manifests": [{"platform": {"os": "linux", "architecture": "amd64"}}]}',
        b'{"config": null}',
        b'{"config": {}}',
    ],
)
def test_json_that_is_no_manifest_is_no_word_of_the_image(
    registry: MemoryRegistry, client: RegistryClient, answer: bytes
) -> None:
    registry.server.misbehave("manifests", Misbehaviour(replace=answer))
    with pytest.raises(NotJudgedError) as caught:
        client.resolve("nvidia/cuda", "latest")
    assert caught.value.code == "registry-unreachable"


def _login(registry: MemoryRegistry, secret: str = "hush") -> dict[str, Any]:
    host = urlsplit(registry.server.url).netloc
    return {"auths": {host: {"auth": base64.b64encode(f"me:{secret}".encode()).decode()}}}


@pytest.mark.parametrize("basic", [False, True])
def test_credentials_come_from_dockers_configuration(
    registry: MemoryRegistry, tmp_path: Path, basic: bool
) -> None:
    registry.password, registry.basic = "hush", basic
    digest = registry.add_image("amd64", "latest")
    config = _docker_config(tmp_path, _login(registry))
    with RegistryClient({"docker.io": registry.server.url}, docker_config=str(config)) as client:
        assert client.resolve("nvidia/cuda", "latest").index_digest == digest
    assert registry.scopes == ([] if basic else ["repository:nvidia/cuda:pull"])


def test_credentials_come_from_a_credential_helper(
    registry: MemoryRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.password = "hush"
    registry.add_image("amd64", "latest")
    helper = tmp_path / "docker-credential-stub"
    helper.write_text('#!/bin/sh\necho \'{"ServerURL": "x", "Username": "me", "Secret": "hush"}\'\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    config = _docker_config(tmp_path, {"credHelpers": {urlsplit(registry.server.url).netloc: "stub"}})
    with RegistryClient({"docker.io": registry.server.url}, docker_config=str(config)) as client:
        assert client.resolve("nvidia/cuda", "latest").platforms.keys() == {"linux/amd64"}


@pytest.mark.filterwarnings("ignore:docker-credential-not-installed")
def test_a_credential_helper_that_fails_is_named(registry: MemoryRegistry, tmp_path: Path) -> None:
    registry.password = "hush"
    config = _docker_config(tmp_path, {"credsStore": "not-installed"})
    with (
        RegistryClient({"docker.io": registry.server.url}, docker_config=str(config)) as client,
        pytest.raises(NotJudgedError) as caught,
    ):
        client.resolve("nvidia/cuda", "latest")
    assert caught.value.code == "registry-credentials"


def test_loopback_needs_no_proxy(
    registry: MemoryRegistry, client: RegistryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.add_image("amd64", "latest")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    client.resolve("nvidia/cuda", "latest")


def test_wrong_credentials(registry: MemoryRegistry, tmp_path: Path) -> None:
    registry.password = "hush"
    config = _docker_config(tmp_path, _login(registry, "wrong"))
    with (
        RegistryClient({"docker.io": registry.server.url}, docker_config=str(config)) as client,
        pytest.raises(NotJudgedError) as caught,
    ):
        client.resolve("nvidia/cuda", "latest")
    assert caught.value.code == "registry-denied"
    assert "hush" not in str(caught.value)
    assert "wrong" not in str(caught.value)


def test_clients_that_share_what_is_down_ask_it_no_more(registry: MemoryRegistry) -> None:
    registry.server.misbehave("/", Misbehaviour(status=500))
    outages, waits = Outages(apart=0), list[float]()
    for _ in range(3):
        mirrors = {"docker.io": registry.server.url}
        with (
            RegistryClient(mirrors, sleep=waits.append, outages=outages) as client,
            pytest.raises(NotJudgedError) as caught,
        ):
            client.resolve("nvidia/cuda", "latest")
        assert caught.value.code == "registry-unreachable"
    assert len(registry.server.requests) == 3
    assert "500" in caught.value.detail
    host = urlsplit(registry.server.url).netloc
    assert caught.value.what == f"the registry {host} cannot be reached"
    assert "map the registry docker.io elsewhere" in caught.value.do
