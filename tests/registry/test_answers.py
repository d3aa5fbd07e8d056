"""What registries answered, for several who ask for the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackbuild.errors import LockError, NotJudgedError
from stackbuild.registry.answers import RegistryAnswers
from stackbuild.registry.client import RegistryClient
from tests.registry.memory_registry import MemoryRegistry
from tests.support.loopback import Misbehaviour

IMAGE = "nvidia/cuda"


def _client(registry: MemoryRegistry, answers: RegistryAnswers) -> RegistryClient:
    return RegistryClient({"docker.io": registry.server.url}, sleep=lambda _seconds: None, answers=answers)


def _asked(registry: MemoryRegistry) -> int:
    return len(registry.server.requested("/manifests/"))


@pytest.mark.parametrize("shared", [False, True])
def test_the_stacks_of_one_base_ask_for_it_once(shared: bool, tmp_path: Path) -> None:
    registry = MemoryRegistry()
    with registry.server:
        child = registry.add_image("amd64", config={"Env": ["A=1"]}, rootfs={"diff_ids": []})
        index = registry.add_index("1", amd64=child)
        kept = RegistryAnswers()
        found = []
        for _ in range(3):
            with _client(registry, RegistryAnswers(tmp_path) if shared else kept) as client:
                found.append(client.resolve(IMAGE, "1"))
        assert _asked(registry) == 1
        assert {one.index_digest for one in found} == {index}
        assert found[0] == found[-1]


def test_trouble_and_what_is_not_there_are_asked_for_again(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    with registry.server:
        answers = RegistryAnswers(tmp_path)
        with _client(registry, answers) as client, pytest.raises(LockError):
            client.resolve(IMAGE, "1")
        child = registry.add_image("amd64", config={"Env": []}, rootfs={"diff_ids": []})
        registry.server.misbehave("/manifests/", Misbehaviour(status=500))
        with _client(registry, answers) as client, pytest.raises(NotJudgedError):
            client.resolve(IMAGE, "1")
        registry.server.behave()
        registry.add_index("1", amd64=child)
        with _client(registry, answers) as client:
            assert client.resolve(IMAGE, "1").platforms == {"linux/amd64": child}


def test_without_its_folder_each_process_asks_for_itself(tmp_path: Path) -> None:
    answers = RegistryAnswers(tmp_path / "swept")
    answers.put("asked", (b"{}\n{}", "application/json"))
    assert answers.get("asked") == (b"{}\n{}", "application/json")
    assert RegistryAnswers(tmp_path / "swept").get("asked") is None
    assert not (tmp_path / "swept").exists()


def test_bytes_come_back_as_they_were(tmp_path: Path) -> None:
    body = b'{"a": 1}\n\n\xff\n'
    RegistryAnswers(tmp_path).put("asked", (body, "text/x"))
    assert RegistryAnswers(tmp_path).get("asked") == (body, "text/x")
    assert [path.suffix for path in tmp_path.iterdir()] == [""]
