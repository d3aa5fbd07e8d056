"""``stackbuild pick`` and ``stackbuild inspect`` against a real registry: five hosts, one repository."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stackbuild.annotate.pin_list import PinList
from stackbuild.cli.main import run
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.referrers import attach
from stackbuild.registry.writer import RegistryWriter
from tests.publish.images import put_stack_image
from tests.publish.test_publish import pins, wheel
from tests.support.registry import Registry

Repository = tuple[str, str]  # as people name it, and inside its registry


@pytest.fixture
def repository(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.chdir(tmp_path)
    name = f"team/pick-{uuid.uuid4().hex[:8]}"
    return f"{registry.address}/{name}", name


def torch_pins(version: str, variant: str, runtime: str | None) -> PinList:
    wheels = [wheel("torch", f"{version}+{variant}")]
    if runtime is not None:
        suffix = "" if variant == "cu130" else f"-cu{variant[2:4]}"
        wheels.append(wheel(f"nvidia-cuda-runtime{suffix}", runtime))
    return pins(*wheels, files="")


@pytest.fixture
def images(registry: Registry, repository: Repository) -> dict[str, str]:
    """Tag → digest of a team's images; ``latest`` is the newest CUDA."""
    name = repository[1]
    return {
        "2.13.0-cu130": put_stack_image(
            registry, name, ["2.13.0-cu130", "latest"], torch_pins("2.13.0", "cu130", "13.0.96")
        ),
        "2.13.0-cu126": put_stack_image(
            registry, name, ["2.13.0-cu126"], torch_pins("2.13.0", "cu126", "12.6.77")
        ),
        "2.7.1-cu118": put_stack_image(
            registry, name, ["2.7.1-cu118"], torch_pins("2.7.1", "cu118", "11.8.89")
        ),
        "2.13.0-cpu": put_stack_image(registry, name, ["2.13.0-cpu"], torch_pins("2.13.0", "cpu", None)),
        "staging-1-000000000000-1-1-0": put_stack_image(
            registry, name, ["staging-1-000000000000-1-1-0"], torch_pins("2.14.1", "cu130", "13.0.96")
        ),
    }


@pytest.fixture
def picked(
    repository: Repository, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, dict[str, Any]]]:
    def pick(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = run(["pick", repository[0], "--format", "json", *arguments])
        return code, json.loads(capfd.readouterr().out)

    return pick


@pytest.mark.parametrize(
    ("host", "tag"),
    [
        (("--driver", "580.95.05", "--gpu", "H200"), "2.13.0-cu130"),
        (("--driver", "560.35.03", "--gpu", "L40S"), "2.13.0-cu126"),
        (("--driver", "470.256.02", "--gpu", "V100"), "2.7.1-cu118"),
        (("--driver", "580.95.05", "--gpu", "V100"), "2.13.0-cu126"),
        (("--driver", "580.95.05", "--gpu", "B200"), "2.13.0-cu130"),
    ],
)
def test_each_host_gets_the_best_that_serves_it(
    picked: Callable[..., tuple[int, dict[str, Any]]],
    images: dict[str, str],
    repository: Repository,
    host: tuple[str, ...],
    tag: str,
) -> None:
    code, choice = picked(*host)
    reasons = {candidate["tags"][0]: candidate["reason"] for candidate in choice["candidates"]}
    assert (code, choice["chosen-tag"]) == (0, tag), reasons
    assert choice["chosen"] == f"{repository[0]}@{images[tag]}"
    assert len(choice["candidates"]) == 4, "staging is not for picking"
    assert all(candidate["reason"] for candidate in choice["candidates"])


def test_losers_say_why(picked: Callable[..., tuple[int, dict[str, Any]]], images: dict[str, str]) -> None:
    _, choice = picked("--driver", "560.35.03", "--gpu", "L40S")
    reasons = {candidate["tags"][0]: candidate["reason"] for candidate in choice["candidates"]}
    assert "needs CUDA 13.0, this driver stops at 12.6" in reasons["2.13.0-cu130"]
    assert reasons["2.13.0-cpu"] == "would run, but leaves the GPU unused"
    assert reasons["2.7.1-cu118"] == "would run, but has torch 2.7.1 where the chosen one has 2.13.0"


def test_a_fleet_needs_one_image_for_all_its_hosts(
    picked: Callable[..., tuple[int, dict[str, Any]]], images: dict[str, str], tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.json"
    old = {"name": "old", "driver": "560.35.03", "gpus": [{"name": "NVIDIA L40S"}]}
    new = {"name": "new", "driver": "580.95.05", "gpus": [{"name": "NVIDIA H200"}]}
    fleet.write_text(json.dumps({"hosts": [old, new]}))
    code, choice = picked("--fleet", str(fleet))
    assert (code, choice["chosen-tag"]) == (0, "2.13.0-cu126")
    oldest = {"name": "oldest", "driver": "390.157", "gpus": [{"name": "NVIDIA H200"}]}
    fleet.write_text(json.dumps({"hosts": [oldest, new]}))
    code, choice = picked("--fleet", str(fleet))
    assert (code, choice["chosen-tag"]) == (0, "2.13.0-cpu")
    arm = {"name": "arm", "machine": "aarch64", "driver": "580.95.05", "gpus": [{"name": "NVIDIA GH200"}]}
    fleet.write_text(json.dumps({"hosts": [arm, new]}))
    code, choice = picked("--fleet", str(fleet))
    assert code == 1
    assert "chosen" not in choice


def test_the_reference_alone_goes_to_stdout(
    repository: Repository, images: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    host = ["--driver", "580.95.05", "--gpu", "H200"]
    assert run(["pick", repository[0], *host, "--format", "reference"]) == 0
    assert capfd.readouterr().out == f"{repository[0]}@{images['2.13.0-cu130']}\n"


def test_an_empty_repository_has_nothing_to_pick(
    registry: Registry, capfd: pytest.CaptureFixture[str]
) -> None:
    host = ["--driver", "580.95.05", "--gpu", "H200"]
    for command in (["pick", *host], ["inspect", "--remote"]):
        assert run([*command, f"{registry.address}/none/there"]) == 3
        told = capfd.readouterr().err
        assert "has no repository none/there" in told
        assert "[no-such-repository]" in told
        assert "Check its name" in told


def test_inspect_reads_a_registry_without_fetching_layers(
    repository: Repository, images: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    digest = images["2.13.0-cu126"]
    with RegistryClient() as client:
        writer = RegistryWriter(client)
        size = len((client.document(repository[0], digest) or (b"", ""))[0])
        subject = {"mediaType": OCI_MANIFEST, "digest": digest, "size": size}
        bom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{}, {}]}
        attach(
            writer,
            repository[0],
            subject,
            artifact_type="application/vnd.cyclonedx+json",
            content=json.dumps(bom).encode(),
            media_type="application/vnd.cyclonedx+json",
            name="document",
            annotations={},
        )
        attach(
            writer,
            repository[0],
            subject,
            artifact_type="application/vnd.stackbuild.verification.v1+json",
            content=b"{}",
            media_type="application/json",
            name="document",
            annotations={
                "io.stackbuild.verdict": "PASS",
                "io.stackbuild.complete": "true",
                "io.stackbuild.started": "2026-01-02T03:04:05Z",
                "io.stackbuild.gpus": "sm_89",
            },
        )
    assert run(["inspect", f"{repository[0]}:2.13.0-cu126", "--format", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    (platform,) = document["platforms"]
    assert document["digest"] == digest
    assert platform["inspection"]["relation"] == "exact"
    assert platform["inspection"]["pins"]["cuda"] == "12.6.77"
    assert platform["sbom"]["components"] == 2
    assert platform["results"][0]["gpus"] == ["sm_89"]

    assert run(["inspect", f"{repository[0]}@{digest}"]) == 0
    text = capfd.readouterr().out
    assert re.search(r"^  SBOM +CycloneDX 1.6, 2 components$", text, re.M)
    assert re.search(r"^  verification +PASS, complete, 2026-01-02T03:04:05Z, on sm_89$", text, re.M)
    starts = {re.match(r"  \S+(?: \S+)* {2,}", line) for line in text.splitlines() if line.startswith("  ")}
    assert len({found.end() for found in starts if found}) == 1, "one column of values"
    assert run(["inspect", f"{repository[0]}:2.13.0-cu12"]) == 3
    assert "2.13.0-cu126" in capfd.readouterr().err
