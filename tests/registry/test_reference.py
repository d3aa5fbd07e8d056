"""Image names and mirrors."""

from __future__ import annotations

import pytest

from stackbuild.errors import UsageError
from stackbuild.registry.reference import endpoint_of, parse_repository


@pytest.mark.parametrize(
    ("image", "registry", "name"),
    [
        ("debian", "docker.io", "library/debian"),
        ("nvidia/cuda", "docker.io", "nvidia/cuda"),
        ("docker.io/nvidia/cuda", "docker.io", "nvidia/cuda"),
        ("index.docker.io/debian", "docker.io", "library/debian"),
        ("localhost/app", "localhost", "app"),
        ("registry.example:5000/team/app", "registry.example:5000", "team/app"),
    ],
)
def test_names(image: str, registry: str, name: str) -> None:
    repository = parse_repository(image)
    assert (repository.registry, repository.name) == (registry, name)


@pytest.mark.parametrize("image", ["nvidia/cuda:13.0", "Nvidia/cuda", "a//b", "", "a b", "-x", "http://a/b"])
def test_what_is_no_repository_is_refused(image: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_repository(image)
    assert caught.value.code == "bad-image-name"


def test_without_a_mirror_the_registry_itself_answers_over_https() -> None:
    endpoint = endpoint_of(parse_repository("nvidia/cuda"), {})
    assert endpoint.url.startswith("https://")
    assert endpoint.url.endswith("/v2/nvidia/cuda")
    assert endpoint.reference == "nvidia/cuda"


@pytest.mark.parametrize(
    ("mirror", "url", "reference"),
    [
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v2/nvidia/cuda", "127.0.0.1:5000/nvidia/cuda"),
        ("http://127.0.0.1:5000/", "http://127.0.0.1:5000/v2/nvidia/cuda", "127.0.0.1:5000/nvidia/cuda"),
        ("mirror.example/hub", "https://mirror.example/v2/hub/nvidia/cuda", "mirror.example/hub/nvidia/cuda"),
    ],
)
def test_mirror(mirror: str, url: str, reference: str) -> None:
    endpoint = endpoint_of(parse_repository("nvidia/cuda"), {"docker.io": mirror})
    assert endpoint.url == url
    assert endpoint.reference == reference


def test_a_mirror_of_another_registry_is_not_used() -> None:
    endpoint = endpoint_of(parse_repository("registry.example/app"), {"docker.io": "127.0.0.1:5000"})
    assert endpoint.host == "registry.example"


def test_passwords_do_not_cross_the_network_in_the_clear() -> None:
    plain = endpoint_of(parse_repository("app"), {"docker.io": "http://mirror.example"})
    loopback = endpoint_of(parse_repository("app"), {"docker.io": "http://127.0.0.1:1"})
    assert not plain.may_carry_credentials
    assert loopback.may_carry_credentials


def test_a_mirror_that_is_no_host() -> None:
    with pytest.raises(UsageError, match="is not a host"):
        endpoint_of(parse_repository("app"), {"docker.io": "file:///mirror"})
