"""What was attached and signed, read by the tools of others: oras and cosign of Debian trixie."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from stackbuild.errors import NotJudgedError, UsageError
from stackbuild.publish.attachments import SBOM_TYPE, attach_document, sbom_attachment
from stackbuild.publish.sign import sign
from stackbuild.registry.client import RegistryClient
from stackbuild.registry.documents import OCI_MANIFEST
from stackbuild.registry.referrers import list_referrers
from stackbuild.registry.writer import RegistryWriter
from tests.publish.images import put_stack_image
from tests.publish.test_publish import CU130, pins
from tests.support.registry import Registry
from tests.support.trixie_programs import trixie_program

pytestmark = pytest.mark.slow

BOM = b'{"bomFormat":"CycloneDX","specVersion":"1.6","metadata":{"timestamp":"2026-01-02T03:04:05Z"}}'


def image(registry: Registry) -> tuple[str, str]:
    name = f"team/tools-{uuid.uuid4().hex[:8]}"
    return f"{registry.address}/{name}", put_stack_image(registry, name, ["v1"], pins(*CU130))


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_oras_finds_and_reads_what_was_attached(registry: Registry, tmp_path: Path) -> None:
    oras = trixie_program("oras")
    repository, digest = image(registry)
    reference = f"{repository}@{digest}"
    with RegistryClient() as client:
        found = client.document(repository, digest)
        assert found is not None
        subject = {"mediaType": OCI_MANIFEST, "digest": digest, "size": len(found[0])}
        attached = attach_document(
            RegistryWriter(client), repository, subject, sbom_attachment(BOM, "sha256:" + "1" * 64)
        )
    listed = json.loads(run(oras, "discover", "--plain-http", "--format", "json", reference))
    (entry,) = listed["manifests"]
    assert (entry["artifactType"], entry["digest"]) == (SBOM_TYPE, attached)
    assert entry["annotations"]["io.stackbuild.config"] == "sha256:" + "1" * 64
    run(
        oras,
        "pull",
        "--plain-http",
        "--output",
        tmp_path,
        "--allow-path-traversal",
        f"{repository}@{attached}",
    )
    assert (tmp_path / "sbom.cdx.json").read_bytes() == BOM

    # And the other way round: what oras attaches stands beside it.
    (tmp_path / "note.txt").write_text("seen")
    command = [oras, "attach", "--plain-http", "--artifact-type", "text/x-note", reference, "note.txt"]
    done = subprocess.run([str(part) for part in command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with RegistryClient() as client:
        types = {referrer.artifact_type for referrer in list_referrers(client, repository, digest)}
    assert types == {SBOM_TYPE, "text/x-note"}


def test_cosign_verifies_what_was_signed(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cosign = trixie_program("cosign")
    repository, digest = image(registry)
    reference = f"{repository}@{digest}"
    monkeypatch.setenv("PATH", f"{cosign.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COSIGN_PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)
    run(cosign, "generate-key-pair")
    verify = [cosign, "verify", "--insecure-ignore-tlog=true", "--key", "cosign.pub", reference]
    assert subprocess.run([str(part) for part in verify], capture_output=True).returncode != 0
    sign(reference, "cosign.key")
    assert digest in run(*verify)
    monkeypatch.setenv("COSIGN_PASSWORD", "wrong")
    with pytest.raises(NotJudgedError) as caught:
        sign(reference, "cosign.key")
    assert caught.value.code == "signing-failed"


def test_a_key_without_cosign_is_a_mistake_of_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        sign("registry.example/app@sha256:" + "0" * 64, "cosign.key")
    assert caught.value.code == "cosign-missing"
