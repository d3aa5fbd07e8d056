"""``stackbuild publish`` against a real engine and a real registry, cut off at every step."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.engine.docker_engine import Engine
from stackbuild.progress import SilentObserver
from stackbuild.publish.staging import is_internal
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.writer import RegistryWriter
from tests.engine.publishing import Project
from tests.support.trixie_programs import trixie_program

pytestmark = pytest.mark.engine

# In the order of a run; the first after which a tag that people use may have moved is "tag".
STEPS = (
    "collect",
    "push",
    "share-layers",
    "pull",
    "judge",
    "attach",
    "tag-inputs",
    "compare-tags",
    "tag",
    "read-back",
    "unstage",
)


def test_what_passed_is_tagged_with_everything_attached(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build("1")
    assert run(["build", project.name, "--locked", "--verify", "-q"]) == 0
    begun = datetime.now(UTC)
    capfd.readouterr()
    assert run(["publish", project.name, project.repository, "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["outcome"] == "published"
    assert report["complete"] is True
    version, latest = report["tags"]
    assert latest == "latest"
    assert version.startswith("py311-")
    assert project.digest("latest") == project.digest(version) == report["digest"]
    internal = {tag.split("-")[0] for tag in project.tags() if is_internal(tag)}
    assert internal == {"inputs", "sha256"}, "no staging tag is left"

    assert run(["inspect", f"{project.repository}:latest", "--remote", "--format", "json"]) == 0
    (platform,) = json.loads(capfd.readouterr().out)["platforms"]
    assert platform["inspection"]["pins"]["stack"] == project.name
    assert platform["sbom"]["format"] == "CycloneDX 1.6"
    results = {result["kind"]: result for result in platform["results"]}
    assert sorted(results) == ["scan", "verification"]
    assert results["verification"]["verdict"] == "PASS"
    started = datetime.fromisoformat(results["verification"]["started"])
    assert started >= begun.replace(microsecond=0), (
        "judged anew, though there was a result for the same inputs"
    )
    assert all(result["complete"] for result in results.values())

    # The base's layer is the base's own blob, so whoever has the base fetches it never again.
    with RegistryClient() as client:
        manifest = client.manifest(project.repository, report["digest"])
    assert manifest["mediaType"] == OCI_MANIFEST
    assert manifest["layers"][0]["digest"] == project.base_blob

    # The same inputs again: found by their hash, nothing is pushed or judged.
    assert run(["publish", project.name, f"{project.repository}:stable", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert [finding["code"] for finding in report["findings"]] == ["published-before", "tags-read-back"]
    assert project.digest("stable") == project.digest("latest")


def test_a_run_that_was_cut_off_leaves_old_tags_and_the_next_finishes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACKBUILD_LAYER_CACHE", f"{project.registry.address}/team/layers")
    project.build("1")
    assert run(["publish", project.name, f"{project.repository}:cut", "-q"]) == 0
    old = project.digest("cut")
    project.build("2")
    for step in STEPS:
        project.killed_at(step, "publish", project.name, f"{project.repository}:cut", "--fresh")
        if STEPS.index(step) <= STEPS.index("tag"):
            assert project.digest("cut") == old, f"moved by a run that was killed at {step}"
        else:
            assert project.digest("cut") not in (None, old)
    assert run(["publish", project.name, f"{project.repository}:cut", "-q", "--fresh"]) == 0
    new = project.digest("cut")
    assert new not in (None, old)
    left = {tag for tag in project.tags() if tag.startswith(("staging-", "staged-"))}
    assert not left


def test_a_run_that_was_cut_off_while_signing_is_finished_by_the_next(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cosign = trixie_program("cosign")
    monkeypatch.setenv("PATH", f"{cosign.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COSIGN_PASSWORD", "secret")
    subprocess.run([cosign, "generate-key-pair"], cwd=tmp_path, check=True, capture_output=True)
    project.build("1")
    target = f"{project.repository}:signed"
    publish = ["publish", project.name, target, "--fresh", "--sign-key", str(tmp_path / "cosign.key")]
    project.killed_at("sign", *publish)
    assert project.digest("signed") is None
    capfd.readouterr()
    assert run([*publish, "-q", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["signed"] is True
    assert project.digest("signed") == report["digest"]
    reference = f"{project.repository}@{report['digest']}"
    verify: list[str | Path] = [
        cosign,
        "verify",
        "--insecure-ignore-tlog=true",
        "--key",
        tmp_path / "cosign.pub",
        reference,
    ]
    assert report["digest"] in subprocess.run(verify, check=True, capture_output=True, text=True).stdout


def test_two_publishers_of_one_tag_never_undo_each_other_unsaid(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build("1")
    assert run(["publish", project.name, f"{project.repository}:theirs", "-q"]) == 0
    theirs = project.digest("theirs")
    project.build("2")
    ours = ["publish", project.name, f"{project.repository}:raced", "--format", "json"]

    def move() -> None:
        with RegistryClient() as client:
            found = client.document(project.repository, "theirs")
            assert found is not None
            RegistryWriter(client).put_manifest(project.repository, "raced", *found)

    # While this one judges, the other is done: what it published stays.
    with monkeypatch.context() as patch:
        project.at("judge", move, patch)
        capfd.readouterr()
        assert run([*ours, "--fresh"]) == 5
    report = json.loads(capfd.readouterr().out)
    assert report["outcome"] == "refused"
    (finding,) = [finding for finding in report["findings"] if finding["verdict"] == "ERROR"]
    assert finding["code"] == "tags-moved-meanwhile"
    assert finding["measured"] == f"raced: {theirs}"
    assert finding["required"] == "raced: no such tag"
    assert project.digest("raced") == theirs

    # After this one has written the tag and before it reads it back: that is said too.
    with monkeypatch.context() as patch:
        project.at("read-back", move, patch)
        assert run(ours) == 5
    report = json.loads(capfd.readouterr().out)
    (finding,) = [finding for finding in report["findings"] if finding["verdict"] == "ERROR"]
    assert (finding["code"], finding["summary"]) == (
        "tags-read-back",
        "raced names something else than was just written",
    )
    assert project.digest("raced") == theirs

    # The same once more, with nobody in the way.
    assert run([*ours, "-q"]) == 0
    assert project.digest("raced") == json.loads(capfd.readouterr().out)["digest"] != theirs


def test_nothing_is_tagged_when_a_gate_fails(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    project.build("4", requires=["not-in-the-image"])
    capfd.readouterr()
    assert run(["publish", project.name, f"{project.repository}:broken", "--format", "json"]) == 1
    report = json.loads(capfd.readouterr().out)
    assert report["outcome"] == "refused"
    assert report["tags"] == []
    assert project.digest("broken") is None
    verdicts = {finding["code"]: finding["verdict"] for finding in report["findings"]}
    assert verdicts["dependencies-consistent"] == "FAIL"
    # What was found stays readable beside the image.
    assert run(["inspect", f"{project.repository}@{report['digest']}", "--remote"]) == 0
    assert "  verification   FAIL" in capfd.readouterr().out


def test_an_image_on_top_of_a_stack_is_not_published_as_the_stack(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build("1")
    derived = f"{project.name}:derived"
    _build(project.engine, derived, f"FROM {project.name}:latest\nRUN rm /usr/bin/perl\n")
    assert run(["publish", derived, project.repository]) == 2
    assert "[tag-needed]" in capfd.readouterr().err
    assert run(["publish", derived, f"{project.repository}:derived", "--format", "json"]) == 0
    report = json.loads(capfd.readouterr().out)
    verdicts = {finding["code"]: finding["verdict"] for finding in report["findings"]}
    # The lock of the image below says nothing of the layer on top, so the SBOM is read from the image.
    assert verdicts["sbom-attached"] == "PASS"
    assert run(["sbom", derived, "-q"]) == 0
    sbom = json.loads(capfd.readouterr().out)
    assert sbom["metadata"]["component"]["name"] == "image", "it is not the stack that its labels still name"
    with RegistryClient() as client:
        assert client.manifest(project.repository, report["digest"])["annotations"] == {}
    assert project.digest("derived") == report["digest"]


def test_gpu_jobs_judge_what_a_cpu_job_staged(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    project.build("3")
    capfd.readouterr()
    assert run(["publish", project.name, project.repository, "--stage", "--format", "json"]) == 0
    staged = json.loads(capfd.readouterr().out)
    assert staged["outcome"] == "staged"
    assert project.digest(staged["staged"]) == staged["digest"]
    reference = f"{project.repository}@{staged['digest']}"

    promote = ["publish", reference, f"{project.repository}:promoted", "--format", "json"]
    assert run([*promote, "--require", "cpu,sm_90"]) == 5
    report = json.loads(capfd.readouterr().out)
    assert [f["summary"] for f in report["findings"] if f["verdict"] == "ERROR"] == [
        "no report of cpu is attached",
        "no report of sm_90 is attached",
    ]
    assert project.digest("promoted") is None

    assert run(["verify", reference, "--attach", "-q"]) == 0
    assert project.engine.image(reference) is None, "what it pulled, it removes"
    project.engine.pull(reference, platform="linux/amd64", observer=SilentObserver())
    assert run(["verify", reference, "--attach", "-q"]) == 0
    assert project.engine.image(reference) is not None, "what was there before, stays"
    capfd.readouterr()
    assert run([*promote, "--require", "cpu,sm_90"]) == 5
    assert "no report of sm_90 is attached" in capfd.readouterr().out
    assert run([*promote, "--require", "cpu", "--max-age", "0"]) == 5
    assert "old" in capfd.readouterr().out
    assert run([*promote, "--require", "cpu"]) == 0
    assert project.digest("promoted") == staged["digest"]


def test_a_machine_with_an_empty_store_builds_from_the_registry_without_a_wheel(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = f"{project.registry.address}/team/layers"
    project.build("5")
    monkeypatch.setenv("STACKBUILD_LAYER_CACHE", cache)
    assert run(["publish", project.name, project.repository, "-q"]) == 0
    first = project.engine.image(f"{project.name}:latest")
    assert first is not None
    digest = project.digest("latest")

    project.clean()
    for wheel in project.wheels.iterdir():
        wheel.unlink()
    monkeypatch.setenv("STACKBUILD_STORE", str(project.folder / "another-machine"))
    capfd.readouterr()
    assert run(["build", project.name, "--locked", "--format", "json"]) == 0
    shown = capfd.readouterr()
    (row,) = json.loads(shown.out)["stacks"]
    assert row["made"] == []
    assert tuple(row["diff-ids"]) == first.diff_ids
    assert row["image-id"] == first.id
    assert f"came from {cache}" in shown.err
    # And publishing it there finds it published: it is only tagged.
    assert run(["publish", project.name, f"{project.repository}:there", "-q"]) == 0
    assert project.digest("there") == digest

    # A cache that is down is said, and does not stop a build that needs nothing of it.
    monkeypatch.setenv("STACKBUILD_LAYER_CACHE", "127.0.0.1:9/team/layers")
    project.build("6")
    assert "the layer cache cannot be used" in capfd.readouterr().err


def _build(engine: Engine, tag: str, dockerfile: str) -> None:
    import io
    import tarfile

    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        archive.addfile(entry, io.BytesIO(dockerfile.encode()))
    context.seek(0)
    engine.build(context, tag=tag)
