"""``stackbuild sbom`` of a stack, which needs no engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackbuild.cli.main import run
from stackbuild.lock.file import write_lock
from stackbuild.lock.model import Lock
from stackbuild.spec.load import load_spec
from stackbuild.spec.requirements_input import lock_inputs_sha256
from tests.build.stacks import locked_wheel
from tests.conftest import SiteFile
from tests.lock.examples import bootstrap_base, deb, platform_lock
from tests.support.wheels import make_wheel

SPEC = """\
schema: 1
name: example
base: {bootstrap: debian, suite: bookworm}
python: "3.11"
packages: [leaf]
"""


@pytest.fixture
def stack(
    tmp_path: Path,
    wheel_folder: Path,
    store_root: Path,
    site_file: SiteFile,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A locked stack whose one wheel lies in the default index's folder, and not yet in the store."""
    wheel = make_wheel(wheel_folder, "leaf", "1.0", metadata=["License-Expression: MIT"])
    site_file(indexes={"default": {"folder": str(wheel_folder)}})
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "stacks" / "example.yaml"
    path.parent.mkdir()
    path.write_text(SPEC)
    loaded = load_spec(path)
    locked = platform_lock(
        base=bootstrap_base(deb("libc6")), wheels=(locked_wheel(wheel, "leaf", "1.0", requested=True),)
    )
    write_lock(
        path.with_suffix(".lock"),
        Lock(
            stack="example",
            spec_sha256=lock_inputs_sha256(loaded.spec, loaded.folder),
            platforms={"linux/amd64": locked},
        ),
    )
    return path


def test_the_bytes_do_not_depend_on_what_is_in_the_store(stack: Path) -> None:
    assert run(["sbom", "example", "-o", "cold.json"]) == 0
    assert run(["sbom", "example", "-o", "warm.json"]) == 0
    assert Path("cold.json").read_bytes() == Path("warm.json").read_bytes()


def test_the_document_alone_goes_to_stdout(stack: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["sbom", "example"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["metadata"]["component"]["name"] == "example"
    (leaf,) = [entry for entry in document["components"] if entry["name"] == "leaf"]
    (licence,) = leaf["licenses"]
    assert licence["license"]["id"] == "MIT"


def test_a_stale_lock_ends_with_3(stack: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stack.write_text(SPEC.replace("leaf", "other"))
    assert run(["sbom", "example"]) == 3
    assert "lock-stale" in capfd.readouterr().err


def test_a_platform_that_is_not_locked_is_a_usage_error(
    stack: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["sbom", "example", "--platform", "linux/arm64"]) == 2
    assert "linux/amd64" in capfd.readouterr().err
