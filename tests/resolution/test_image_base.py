"""Pinning base images against a registry on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stackbuild.errors import ExitCode, LockError
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.image_base import image_base_reference, lock_image_base
from stackbuild.site_config import SiteConfig
from stackbuild.spec.model import ImageBaseSpec
from tests.registry.memory_registry import MemoryRegistry, digest_of

TAG = "13.0.3-base-ubuntu24.04"


@pytest.fixture
def registry() -> Iterator[MemoryRegistry]:
    made = MemoryRegistry()
    with made.server:
        yield made


@pytest.fixture
def client(registry: MemoryRegistry) -> Iterator[RegistryClient]:
    with RegistryClient({"docker.io": registry.server.url}, sleep=lambda _: None) as made:
        yield made


def _spec(digest: str | None = None) -> ImageBaseSpec:
    return ImageBaseSpec(image="nvidia/cuda", tag=TAG, digest=digest)


def _both(registry: MemoryRegistry) -> tuple[str, str, str]:
    amd64, arm64 = registry.add_image("amd64"), registry.add_image("arm64")
    return registry.add_index(TAG, amd64=amd64, arm64=arm64), amd64, arm64


def test_index_and_platform_digest_are_both_locked(registry: MemoryRegistry, client: RegistryClient) -> None:
    index, _, arm64 = _both(registry)
    base = lock_image_base(_spec(), "linux/arm64", client=client)
    assert (base.index_digest, base.platform_digest) == (index, arm64)
    assert base.config["architecture"] == "arm64"
    assert "rootfs" not in base.config
    assert base.config_digest in registry.blobs


def test_a_pull_names_the_platform_at_the_mirror(registry: MemoryRegistry, client: RegistryClient) -> None:
    _, amd64, _ = _both(registry)
    base = lock_image_base(_spec(), "linux/amd64", client=client)
    site = SiteConfig(registries={"docker.io": "127.0.0.1:5000"})
    assert image_base_reference(base, site) == f"127.0.0.1:5000/nvidia/cuda@{amd64}"


def test_previous_base_stays_without_asking_the_registry(
    registry: MemoryRegistry, client: RegistryClient
) -> None:
    _both(registry)
    before = lock_image_base(_spec(), "linux/amd64", client=client)
    moved = registry.add_index(TAG, amd64=registry.add_image("amd64"))
    asked = len(registry.server.requests)
    assert lock_image_base(_spec(), "linux/amd64", client=client, previous=before) == before
    assert len(registry.server.requests) == asked
    upgraded = lock_image_base(_spec(), "linux/amd64", client=client, previous=before, upgrade=True)
    assert upgraded.index_digest == moved


def test_the_specs_digest_must_be_the_tags(registry: MemoryRegistry, client: RegistryClient) -> None:
    index, _, _ = _both(registry)
    assert lock_image_base(_spec(index), "linux/amd64", client=client).index_digest == index
    with pytest.raises(LockError) as caught:
        lock_image_base(_spec(digest_of(b"another")), "linux/amd64", client=client)
    assert caught.value.code == "tag-digest-mismatch"
    assert index in caught.value.what


def test_digest_of_another_platform_is_refused(registry: MemoryRegistry, client: RegistryClient) -> None:
    _, _, arm64 = _both(registry)
    with pytest.raises(LockError) as caught:
        lock_image_base(_spec(arm64), "linux/amd64", client=client)
    assert caught.value.code == "digest-platform-mismatch"
    assert caught.value.exit_code is ExitCode.SPEC_OR_LOCK
    assert "linux/arm64" in caught.value.what
    assert "exec format error" in caught.value.do


def test_digest_of_the_stacks_only_platform_is_taken(
    registry: MemoryRegistry, client: RegistryClient
) -> None:
    _, _, arm64 = _both(registry)
    base = lock_image_base(_spec(arm64), "linux/arm64", client=client)
    assert base.index_digest == base.platform_digest == arm64


def test_single_manifest_of_another_platform(registry: MemoryRegistry, client: RegistryClient) -> None:
    registry.add_image("arm64", TAG)
    with pytest.raises(LockError) as caught:
        lock_image_base(_spec(), "linux/amd64", client=client)
    assert caught.value.code == "digest-platform-mismatch"


def test_index_that_lacks_the_platform_says_what_it_has(
    registry: MemoryRegistry, client: RegistryClient
) -> None:
    registry.add_index(TAG, arm64=registry.add_image("arm64"))
    with pytest.raises(LockError) as caught:
        lock_image_base(_spec(), "linux/amd64", client=client)
    assert caught.value.code == "no-such-platform"
    assert "linux/arm64" in caught.value.what


def test_index_that_lies_about_a_platform(registry: MemoryRegistry, client: RegistryClient) -> None:
    registry.add_index(TAG, amd64=registry.add_image("arm64"))
    with pytest.raises(LockError) as caught:
        lock_image_base(_spec(), "linux/amd64", client=client)
    assert caught.value.code == "digest-platform-mismatch"


def test_a_locked_tag_that_is_gone(registry: MemoryRegistry, client: RegistryClient) -> None:
    _both(registry)
    before = lock_image_base(_spec(), "linux/amd64", client=client)
    del registry.tags[TAG]
    with pytest.raises(LockError) as caught:
        lock_image_base(_spec(), "linux/amd64", client=client, previous=before, upgrade=True)
    assert caught.value.code == "tag-removed"
    assert "can still be fetched" in caught.value.what
