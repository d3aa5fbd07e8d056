"""Everything a published image says of itself, held against what is in it; and further ways to publish."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from stackbuild.annotate.annotations import INPUTS
from stackbuild.annotate.labels import PINS_LABEL
from stackbuild.annotate.tags import content_hash, image_version
from stackbuild.cli.main import run
from stackbuild.lock.file import lock_sha256, read_lock
from stackbuild.lock.path import lock_path
from stackbuild.publish.attachments import (
    SBOM_TYPE,
    attach_document,
    attached_reports,
    sbom_attachment,
    verification_attachment,
)
from stackbuild.publish.inputs import stack_inputs
from stackbuild.publish.remote_image import read_remote
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.referrers import attached_content, list_referrers
from stackbuild.registry.writer import RegistryWriter
from stackbuild.spec.load import load_spec
from tests.engine.publishing import Project
from tests.publish.images import put_stack_image
from tests.publish.test_publish import CU130, pins
from tests.registry.test_writer import HTPASSWD
from tests.support.loopback import Misbehaviour
from tests.support.registry import Registry, RegistryFront

pytestmark = pytest.mark.engine


def test_every_label_and_annotation_is_what_is_in_the_image(project: Project) -> None:
    project.build("1")
    assert run(["publish", project.name, project.repository, "-q"]) == 0
    with RegistryClient() as client:
        manifest = client.manifest(project.repository, str(project.digest("latest")))
        config = client.config(project.repository, manifest["config"]["digest"])
        layers = [
            gzip.decompress(b"".join(client.blob(project.repository, layer["digest"])))
            for layer in manifest["layers"]
        ]
        base = client.resolve(f"{project.registry.address}/{project.name}/library/base", "1")
    spec_path = project.stacks / f"{project.name}.yaml"
    stack, lock = load_spec(spec_path), read_lock(lock_path(spec_path))
    diff_ids = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    assert config["rootfs"]["diff_ids"] == diff_ids

    labels = dict(config["config"]["Labels"])
    told = json.loads(labels[PINS_LABEL])
    assert told["diff-ids"] == diff_ids
    inside = _inside(project)
    measured: dict[str, Any] = {
        "stack": stack.spec.name,
        "os": inside["os"],
        "glibc": inside["glibc"],
        "python": inside["python"],
        "base": {"name": "library/base:1", "digest": base.index_digest},
        "compute-capabilities": {},
        "lock-sha256": lock_sha256(lock),
        "files-sha256": "",
        "image-sha256": hashlib.sha256(b'{"cmd": ["python"]}').hexdigest(),
    }
    assert told["pins"] == measured
    with RegistryClient() as client:
        remote = read_remote(client, project.repository, "latest")
    assert remote is not None
    found = json.loads(run_inspect(project))["platforms"][0]["inspection"]
    assert found["relation"] == "exact"
    from stackbuild.annotate.pin_list import PinList

    listed = PinList.model_validate(told["pins"])
    expected = {
        PINS_LABEL: labels[PINS_LABEL],
        "org.opencontainers.image.title": stack.spec.name,
        "org.opencontainers.image.version": image_version(listed),
        "org.opencontainers.image.revision": content_hash(listed),
        "org.opencontainers.image.source": f"stacks/{stack.spec.name}.yaml",
        "org.opencontainers.image.created": config["created"],
        "org.opencontainers.image.base.name": "docker.io/library/base:1",
        "org.opencontainers.image.base.digest": base.index_digest,
    }
    assert labels == expected, "a label that this test does not hold against the image"
    inputs = stack_inputs(stack, lock, "linux/amd64", {})
    assert manifest["annotations"] == {**expected, INPUTS: inputs}
    assert project.digest(f"inputs-{inputs}") == remote.digest
    assert image_version(listed) in project.tags()

    # What is attached says the same in its annotations as in itself.
    with RegistryClient() as client:
        for referrer in list_referrers(client, project.repository, remote.digest):
            document = json.loads(attached_content(client, project.repository, referrer))
            assert referrer.annotations["io.stackbuild.config"] == manifest["config"]["digest"]
            if referrer.artifact_type != SBOM_TYPE:
                assert document["image"]["diff-ids"] == diff_ids
                verdicts = {finding["verdict"] for finding in document["findings"]}
                worst = "WARN" if "WARN" in verdicts else "PASS"
                assert verdicts <= {"PASS", "WARN", "SKIP"}
                assert referrer.annotations["io.stackbuild.verdict"] == worst
                assert str(document["complete"]).lower() == referrer.annotations["io.stackbuild.complete"]
            if document.get("kind") == "verification":
                assert document["image"]["id"] == manifest["config"]["digest"]
                assert document["started"] == referrer.annotations["io.stackbuild.started"]
            elif referrer.artifact_type == SBOM_TYPE:
                properties = {
                    entry["name"].rpartition(":")[2]: entry["value"]
                    for entry in document["metadata"]["component"]["properties"]
                }
                assert properties["config-digest"] == manifest["config"]["digest"]


def run_inspect(project: Project) -> str:
    target = project.folder / "inspection.json"
    reference = f"{project.repository}:latest"
    assert run(["inspect", reference, "--remote", "--format", "json", "-o", str(target)]) == 0
    return target.read_text()


def _inside(project: Project) -> dict[str, str]:
    """What the image's own Python says of it."""
    program = (
        "import json, platform; release = platform.freedesktop_os_release(); "
        "print(json.dumps({'os': release['ID'] + ' ' + release['VERSION_ID'], "
        "'glibc': platform.libc_ver()[1], 'python': platform.python_version()}))"
    )
    with project.engine.container(
        f"{project.name}:latest", ["python", "-c", program], entrypoint=None
    ) as container:
        container.start()
        assert container.wait(300) == 0
        found: dict[str, str] = json.loads(container.logs())
    return found


def test_a_private_registry_takes_the_login_and_a_copy_of_the_base(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build("1")
    with Registry(tmp_path / "private", htpasswd=HTPASSWD) as private:
        repository = f"{private.address}/team/app"
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        (tmp_path / "config.json").write_text("{}")
        assert run(["publish", project.name, repository]) == 5
        assert "[registry-denied]" in capfd.readouterr().err
        auth = base64.b64encode(b"me:secret").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {private.address: {"auth": auth}}}))
        assert run(["publish", project.name, repository, "-q"]) == 0
        with RegistryClient() as client:
            resolved = client.resolve(repository, "latest")
            manifest = client.manifest(repository, resolved.index_digest)
        # Another registry's base is copied blob by blob: the digest stays.
        assert manifest["layers"][0]["digest"] == project.base_blob
        assert run(["inspect", f"{repository}:latest", "--remote"]) == 0


def test_a_registry_that_limits_is_waited_for_and_one_that_limits_for_long_is_said(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build("1")
    with RegistryFront(project.registry) as front:
        target = f"{front.address}/{project.repository.partition('/')[2]}:limited"
        soon = Misbehaviour(status=429, headers={"Retry-After": "1"}, times=1)
        front.misbehave("manifests/limited$", soon)
        front.misbehave("uploads/", soon)
        assert run(["publish", project.name, target, "-q", "--fresh"]) == 0
        assert project.digest("limited") is not None
        capfd.readouterr()
        later = Misbehaviour(status=429, headers={"Retry-After": "7200"})
        front.misbehave("manifests/other$", later)
        assert run(["publish", project.name, target.replace("limited", "other"), "-q", "--fresh"]) == 5
        assert "[registry-rate-limited]" in capfd.readouterr().err
    assert project.digest("other") is None
    assert not {tag for tag in project.tags() if tag.startswith("staging-")}


def test_several_platforms_become_one_index_and_never_a_part_of_one(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build("1")
    capfd.readouterr()
    assert run(["publish", project.name, project.repository, "--stage", "--format", "json"]) == 0
    amd64 = json.loads(capfd.readouterr().out)["digest"]
    assert run(["verify", f"{project.repository}@{amd64}", "--attach", "-q"]) == 0
    capfd.readouterr()
    # An image for arm64, as another machine stages and judges it.
    inner = project.repository.partition("/")[2]
    arm64 = put_stack_image(project.registry, inner, ["from-arm64"], pins(*CU130), architecture="arm64")
    with RegistryClient() as client:
        writer = RegistryWriter(client)
        remote = read_remote(client, project.repository, arm64)
        assert remote is not None
        (child,) = remote.children
        report = attached_reports(client, project.repository, amd64)[0].report
        image = report.image.model_copy(
            update={"id": child.config_digest, "diff_ids": child.diff_ids, "platform": "linux/arm64"}
        )
        theirs = report.model_copy(update={"image": image})
        attach_document(
            writer, project.repository, child.descriptor, verification_attachment(theirs, child.config_digest)
        )
    one, other = f"{project.repository}@{amd64}", f"{project.repository}@{arm64}"
    target, require = f"{project.repository}:multi", ["--require", "cpu", "--format", "json"]

    assert run(["publish", one, other, target, *require]) == 5
    report_ = json.loads(capfd.readouterr().out)
    gaps = [finding["code"] for finding in report_["findings"] if finding["verdict"] == "ERROR"]
    assert gaps == ["sbom-attached"], "the SBOM of arm64 is missing"
    assert project.digest("multi") is None
    _copy_sbom(project.repository, amd64, arm64)

    both = ["--platform", "linux/amd64", "--platform", "linux/arm64"]
    assert run(["publish", one, target, *require, *both]) == 5
    assert "linux/arm64 is missing" in capfd.readouterr().out
    assert project.digest("multi") is None
    project.killed_at("index", "publish", one, other, target, *require, *both)
    assert project.digest("multi") is None
    assert run(["publish", one, other, target, *require, *both]) == 0
    assert not {tag for tag in project.tags() if tag.startswith("staging-")}
    capfd.readouterr()
    index = project.digest("multi")
    with RegistryClient() as client:
        resolved = client.resolve(project.repository, "multi")
    assert resolved.is_index
    assert resolved.platforms == {"linux/amd64": amd64, "linux/arm64": arm64}
    # A later run with one platform alone does not take the other away from those who use it.
    assert run(["publish", one, target, *require]) == 5
    assert "linux/arm64 is missing" in capfd.readouterr().out
    assert project.digest("multi") == index


def _copy_sbom(repository: str, source: str, target: str) -> None:
    with RegistryClient() as client:
        remote = read_remote(client, repository, target)
        assert remote is not None
        child = remote.children[0]
        (sbom,) = [r for r in list_referrers(client, repository, source) if r.artifact_type == SBOM_TYPE]
        document = sbom_attachment(attached_content(client, repository, sbom), child.config_digest)
        attach_document(RegistryWriter(client), repository, child.descriptor, document)
