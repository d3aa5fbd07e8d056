"""Failures that people reported of base images and registries, against a registry on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.errors import ExitCode, StackbuildError
from stackbuild.registry.client import RegistryClient
from stackbuild.resolution.bases.image_base import lock_image_base
from stackbuild.spec.model import ImageBaseSpec
from tests.registry.memory_registry import MemoryRegistry, digest_of
from tests.support.loopback import Misbehaviour

CASES = sorted((Path(__file__).parent / "registry").glob("*.yaml"))
VERDICTS = {ExitCode.SPEC_OR_LOCK: "FAIL", ExitCode.NOT_JUDGED: "ERROR"}


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(path)
    return loaded


def locked_digest(registry: MemoryRegistry, case: dict[str, Any]) -> str | None:
    """The digest that the tag had when it was locked; held: the registry still has it."""
    if case.get("locked") == "held":
        return registry.add_image("amd64")
    return digest_of(b"gone") if case.get("locked") == "gone" else None


def outcome(registry: MemoryRegistry, case: dict[str, Any]) -> StackbuildError | None:
    """What the lock's makers get to hear; None when the base was found."""
    for tag in case.get("tags", ()):
        registry.add_image("amd64", tag)
    digest = locked_digest(registry, case)
    if "image" in case:
        registry.add_image(case["image"], case["tag"])
    if "answers" in case:
        asked = case["answers"]
        registry.server.misbehave(
            "manifests",
            Misbehaviour(
                status=asked["status"], body=asked.get("body", "").encode(), times=asked.get("times")
            ),
        )
    with RegistryClient({"docker.io": registry.server.url}, sleep=lambda _: None) as client:
        try:
            if "platform" in case:
                spec = ImageBaseSpec(image="nvidia/cuda", tag=case["tag"])
                base = lock_image_base(spec, case["platform"], client=client)
                assert base.index_digest == base.platform_digest  # a pin of that platform alone
            else:
                client.resolve("nvidia/cuda", case["tag"], locked_digest=digest)
        except StackbuildError as error:
            return error
    return None


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_base(path: Path) -> None:
    case = read(path)
    registry = MemoryRegistry()
    with registry.server:
        error = outcome(registry, case)
    if case["verdict"] == "PASS":
        assert error is None
        return
    assert error is not None
    assert (error.code, error.exit_code) == (case["code"], case["exit-code"])
    assert VERDICTS[error.exit_code] == case["verdict"]
    for text in case.get("says", ()):
        assert text in str(error)
    for text in case.get("never-says", ()):
        assert text not in str(error)
    if case.get("asked-once"):
        assert len(registry.server.requested(f"manifests/{case['tag']}")) == 1
