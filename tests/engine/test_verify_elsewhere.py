"""What --emit writes is run by the engine as it says, and --collect judges it as a verification here would."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from ruamel.yaml import YAML

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from tests.support.registry import Registry

pytestmark = pytest.mark.engine

TORCH = "class version: cuda = None; hip = None\n__version__ = '2.14.1+cpu'\n"
SPEC = """\
schema: 1
name: theirs
external: {image}
python: "3.11"
frameworks:
  torch: {{version: "2.14.1", variant: cpu}}
"""


@pytest.fixture(scope="module")
def image(engine: Engine, debian_python_image: str, registry: Registry) -> Iterator[str]:
    """Debian with Python and something that calls itself torch, in a registry and in the engine."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("usr/lib/python3/dist-packages/torch/__init__.py")
        entry.size = len(TORCH)
        archive.addfile(entry, io.BytesIO(TORCH.encode()))
    repository, tag = f"{registry.address}/elsewhere", uuid.uuid4().hex[:12]
    with engine.container(debian_python_image, ["/"]) as container:
        container.put("/", raw.getvalue())
        # An entrypoint of the image's own must not get in the way.
        engine._api.commit(container.id, repository, tag, conf={"Entrypoint": ["/no/such/program"]})
    client = docker.from_env()
    for line in client.images.push(repository, tag, stream=True, decode=True):
        assert "error" not in line, line
    client.close()
    yield f"{repository}:{tag}"
    engine.remove_image(f"{repository}:{tag}")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_root: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stack(image: str, tmp_path: Path) -> str:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks/theirs.yaml").write_text(SPEC.format(image=image))
    return "theirs"


def test_a_kubernetes_job_gives_what_a_verification_here_gives(
    stack: str, image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _emitted(stack, "k8s-job", capsys)
    config_map, job = _documents(text)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert f"#   stackbuild verify {stack} --collect output.txt\n" in text
    suite = tmp_path / "config-map"
    suite.mkdir()
    for name, content in config_map["binaryData"].items():
        (suite / name).write_bytes(base64.b64decode(content))
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert container["image"] == _digest(image)
    assert "resources" not in container, "a CPU stack reserves nothing"
    output = _engine_runs(
        container["image"],
        entrypoint=container["command"],
        volumes={str(suite): {"bind": mounts["suite"], "mode": "ro"}},
        tmpfs={mounts["results"]: "rw,mode=1777"},
    )
    _same_as_here(stack, output, tmp_path, capsys)


def test_a_compose_file_gives_what_a_verification_here_gives(
    stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (document,) = _documents(_emitted(stack, "compose", capsys).replace("$$", "$"))
    service = document["services"]["verify"]
    output = _engine_runs(
        service["image"],
        entrypoint=service["entrypoint"],
        environment=dict(service["environment"]),
        tmpfs=dict(entry.split(":", 1) for entry in service["tmpfs"]),
    )
    _same_as_here(stack, output, tmp_path, capsys)
    assert b"STACKBUILD_SUITE" not in output, "the gates' environment is the image's"


def test_a_slurm_script_gives_what_a_verification_here_gives(
    stack: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "verify.sh"
    script.write_text(_emitted(stack, "sbatch", capsys))
    # Docker takes the options that the script gives to Podman.
    program = shutil.which("docker")
    assert program is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/podman").symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("STACKBUILD_RUNTIME", "podman")
    done = subprocess.run(["bash", script], capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("stackbuild-verify.*")), "nothing is left behind"
    _same_as_here(stack, done.stdout, tmp_path, capsys)


def test_an_image_is_found_in_its_registry_where_there_is_no_engine(
    image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_engine, digest = _documents(_emitted(image, "k8s-job", capsys)), _digest(image)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    without = _documents(_emitted(image, "k8s-job", capsys))
    assert without[0]["binaryData"].keys() == {"suite.pyz", "plan.json"}
    bound = json.loads(base64.b64decode(without[0]["binaryData"]["plan.json"]))["bound"]
    assert bound["runs"] == digest
    assert bound["config-digest"].startswith("sha256:")
    assert without == with_engine


def test_output_that_was_cut_or_is_of_another_image_is_an_error(
    stack: str,
    image: str,
    engine: Engine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    debian_python_image: str,
) -> None:
    (document,) = _documents(_emitted(stack, "compose", capsys).replace("$$", "$"))
    service = document["services"]["verify"]
    output = _engine_runs(
        service["image"],
        entrypoint=service["entrypoint"],
        environment=dict(service["environment"]),
        tmpfs=dict(entry.split(":", 1) for entry in service["tmpfs"]),
    )
    file = tmp_path / "output.txt"
    file.write_bytes(output[: len(output) * 2 // 3])
    code, report = _collected(stack, file, capsys)
    assert code in (1, 5)
    assert (report["findings"][0]["code"], report["findings"][0]["verdict"]) == ("collected-cut", "ERROR")
    assert report["complete"] is False

    file.write_bytes(output)
    code, report = _collected(debian_python_image, file, capsys)
    assert code == 5
    assert report["findings"][0]["code"] == "collected-other-image"
    assert f"the output is of another image: {image}" in report["findings"][0]["summary"]
    assert {finding["verdict"] for finding in report["findings"][1:]} == {"SKIP"}

    (tmp_path / "stacks/theirs.yaml").write_text(SPEC.format(image=image).replace("2.14.1", "2.14.2"))
    code, report = _collected(stack, file, capsys)
    assert (code, report["findings"][0]["code"]) == (5, "collected-other-promise")


def _emitted(target: str, kind: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(["verify", target, "--emit", kind]) == 0
    return capsys.readouterr().out


def _documents(text: str) -> list[Any]:
    return list(YAML(typ="safe").load_all(text))


def _digest(image: str) -> str:
    client = docker.from_env()
    (digest,) = client.images.get(image).attrs["RepoDigests"]
    client.close()
    return str(digest)


def _engine_runs(image: str, *, entrypoint: list[str], **options: Any) -> bytes:
    """What a cluster's container engine does with the manifest."""
    client = docker.from_env()
    try:
        return bytes(
            client.containers.run(
                image, [], entrypoint=entrypoint, network_mode="none", remove=True, stderr=True, **options
            )
        )
    finally:
        client.close()


def _collected(target: str, file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["verify", target, "--collect", str(file), "--format", "json", "-q"])
    return code, json.loads(capsys.readouterr().out)


def _same_as_here(stack: str, output: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "output.txt"
    file.write_bytes(output)
    code, collected = _collected(stack, file, capsys)
    here_code = run(["verify", stack, "--format", "json", "-q"])
    here = json.loads(capsys.readouterr().out)
    assert code == here_code
    assert _told(collected) == _told(here)
    assert len([finding for finding in collected["findings"] if finding["verdict"] == "PASS"]) >= 3
    assert collected["ran"] == "collected"
    assert collected["image"]["id"] == here["image"]["id"]
    assert collected["frozen-stack"]["frameworks"] == here["frozen-stack"]["frameworks"]


def _told(report: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """The findings without the times that their sentences tell."""
    return [
        (
            finding["code"],
            finding["verdict"],
            finding["subject"],
            re.sub(r"\d+\.\d+ s\b", "T", finding["summary"]),
        )
        for finding in report["findings"]
    ]
