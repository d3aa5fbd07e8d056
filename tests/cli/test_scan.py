"""``stackbuild scan`` on saved archives, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stackbuild.cli.main import cli
from tests.support.elf import make_elf, make_fatbin
from tests.support.layer_tars import layer_tar, write_docker_archive


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STACKBUILD_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    library = make_elf(soname="libk.so", fatbin=make_fatbin(cubins=["sm_80"]))
    layer = layer_tar({"etc/os-release": "ID=debian\nVERSION_ID=13\n", "opt/lib/libk.so": library})
    return write_docker_archive(tmp_path / "saved.tar", (layer,))


def run(*arguments: str) -> Result:
    # Through the group, as a person calls it: click keeps what a command learns from its first context.
    return CliRunner().invoke(cli, ["scan", *arguments], standalone_mode=True)


def test_a_clean_archive_passes_and_json_is_alone_on_stdout(archive: Path):
    result = run(str(archive), "--gpu", "8.0", "--format", "json", "-q")
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["complete"] is True
    assert value["gpu-code"][0]["cubins"] == {"sm_80": 1}


def test_a_gpu_that_is_not_covered_fails(archive: Path):
    result = run(str(archive), "--gpu", "H100", "-q")
    assert result.exit_code == 1
    assert "FAIL   arch-not-covered" in result.stdout
    assert "libk.so" in result.stdout


def test_without_a_gpu_the_result_is_not_complete(archive: Path):
    result = run(str(archive), "-q")
    assert result.exit_code == 0
    assert "complete: false; not judged: arch-not-covered" in result.stdout


def test_an_unpacked_root_file_system_is_scanned(archive: Path, tmp_path: Path):
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/os-release").write_text("ID=debian\nVERSION_ID=13\n")
    (root / "usr").mkdir()
    result = run(str(root), "-q", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["os"] == "debian 13"


def test_a_stacks_lock_and_waivers_count(archive: Path, tmp_path: Path):
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "theirs.yaml").write_text(
        "schema: 1\nname: theirs\nexternal: example/theirs:1\ntarget: {gpus: [H100]}\n"
        "waivers: [{code: arch-not-covered, match: libk.so, reason: loaded on A100 only, owner: me, until: 2099-01-01}]\n"
    )
    result = run(str(archive), "--stack", "theirs", "-q", "--format", "json")
    assert result.exit_code == 0, result.output
    (finding,) = [
        item for item in json.loads(result.stdout)["findings"] if item["code"] == "arch-not-covered"
    ]
    assert finding["verdict"] == "WARN"
    assert "loaded on A100 only" in finding["waived"]


def test_the_sbom_of_the_same_pass_is_that_of_its_own_command(archive: Path, tmp_path: Path):
    assert run(str(archive), "--gpu", "8.0", "-q", "--sbom", "one.json").exit_code == 0
    alone = CliRunner().invoke(cli, ["sbom", str(archive), "-q", "-o", "two.json"])
    assert alone.exit_code == 0, alone.output
    document = (tmp_path / "one.json").read_bytes()
    assert document == (tmp_path / "two.json").read_bytes()
    assert "libk.so" in {component["name"] for component in json.loads(document)["components"]}


def test_a_path_that_is_not_there_is_said(archive: Path):
    result = run("./missing.tar", "-q")
    assert result.exit_code != 0
    assert getattr(result.exception, "code", "") == "archive-not-found"


@pytest.mark.parametrize("command", ["scan", "sbom"])
def test_the_archive_that_is_read_is_not_written_over(command: str, archive: Path):
    before = archive.read_bytes()
    result = run(command, str(archive), "-o", str(archive))
    assert result.exit_code == 2 or getattr(result.exception, "code", "") == "output-unwritable"
    assert archive.read_bytes() == before
