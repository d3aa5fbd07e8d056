"""Which stacks count as changed, in real Git repositories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stackbuild.cli.main import run
from tests.schedule.repository import PLAIN, GitRepository

READS = PLAIN.format(name="reads") + (
    "packages:\n  - {from: requirements/app.txt}\n"
    "files:\n  - {from: app, to: /srv/app}\n"
    "verify:\n  onnx-model: models/net.onnx\n  torch-model: models/ours.py:build\n"
    "  checks: [checks/mine.py]\n  service: {port: 80, request: ask.json, answer: told.json}\n"
)
FILES = {
    "stacks/alone.yaml": PLAIN.format(name="alone"),
    "stacks/alone.lock": "{}",
    "stacks/reads.yaml": READS,
    "stacks/requirements/app.txt": "-r more/base.txt\n--constraint=bounds.txt\nsix\n",
    "stacks/requirements/more/base.txt": "idna\n",
    "stacks/requirements/bounds.txt": "idna<4\n",
    "stacks/app/main.py": "print()\n",
    "stacks/models/net.onnx": "model",
    "stacks/models/ours.py": "def build(): ...\n",
    "stacks/checks/mine.py": "\n",
    "stacks/ask.json": "{}",
    "stacks/told.json": "{}",
    "README.md": "stacks\n",
    ".gitignore": "*.log\n",
}


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> GitRepository:
    """What every test starts from; they work in copies."""
    made = GitRepository(tmp_path_factory.mktemp("committed") / "project")
    made.commit(FILES)
    return made


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: GitRepository) -> GitRepository:
    made = GitRepository(tmp_path / "project", like=committed)
    monkeypatch.chdir(made.root)
    return made


def asked(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    code = run(["matrix", *arguments, "--format", "json"])
    out, err = capfd.readouterr()
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capfd.readouterr()
    code = run(["matrix", *arguments])
    return code, capfd.readouterr().err


def changed(answer: dict[str, Any]) -> dict[str, list[str]]:
    return {stack["stack"]: stack["changed"] for stack in answer["stacks"]}


def test_nothing_changed(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    repository.write(
        {"README.md": "else\n", "stacks/note.txt": "of no stack\n", "stacks/app.log": "ignored\n"}
    )
    answer = asked(capfd, "--changed-since", "HEAD")
    assert answer["stacks"] == []
    assert answer["removed"] == []
    assert answer["since"] == {"revision": "HEAD", "commit": repository.git("rev-parse", "HEAD")}


@pytest.mark.parametrize(
    ("path", "stack", "how"),
    [
        ("stacks/alone.yaml", "alone", "committed"),
        ("stacks/alone.yaml", "alone", "staged"),
        ("stacks/alone.yaml", "alone", "left"),
        ("stacks/alone.lock", "alone", "left"),
        ("stacks/reads.lock", "reads", "left"),
        ("stacks/requirements/app.txt", "reads", "left"),
        ("stacks/requirements/more/base.txt", "reads", "left"),
        ("stacks/requirements/bounds.txt", "reads", "left"),
        ("stacks/app/main.py", "reads", "left"),
        ("stacks/app/deep/new.py", "reads", "committed"),
        ("stacks/app/deep/new.py", "reads", "staged"),
        ("stacks/app/deep/new.py", "reads", "left"),
        ("stacks/models/net.onnx", "reads", "left"),
        ("stacks/models/ours.py", "reads", "left"),
        ("stacks/checks/mine.py", "reads", "left"),
        ("stacks/ask.json", "reads", "left"),
        ("stacks/told.json", "reads", "left"),
    ],
)
def test_a_file_that_a_stack_reads(
    repository: GitRepository, capfd: pytest.CaptureFixture[str], path: str, stack: str, how: str
) -> None:
    before = repository.git("rev-parse", "HEAD")
    content = FILES.get(path, "")
    repository.write({path: content + ("# a comment\n" if path.endswith((".yaml", ".txt")) else "\n")})
    if how == "committed":
        repository.commit()
    elif how == "staged":
        repository.git("add", "--all")
    assert changed(asked(capfd, "--changed-since", before)) == {stack: [path]}


@pytest.mark.parametrize("table", ["[policy]\neol-tolerance-days = 30\n", '[runners]\ncpu = "big"\n'])
def test_the_site_file_concerns_every_stack(
    repository: GitRepository, capfd: pytest.CaptureFixture[str], table: str
) -> None:
    repository.write({"stackbuild.toml": table})
    told = changed(asked(capfd, "--changed-since", "HEAD"))
    assert told == {"alone": ["stackbuild.toml"], "reads": ["stackbuild.toml"]}


def test_a_site_file_elsewhere_concerns_none(
    repository: GitRepository,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "site.toml").write_text("")
    monkeypatch.setenv("STACKBUILD_CONFIG", str(tmp_path / "site.toml"))
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {}


def test_a_removed_stack_is_listed_and_has_no_job(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    (repository.root / "stacks/alone.yaml").unlink()
    answer = asked(capfd, "--changed-since", "HEAD")
    assert answer["stacks"] == []
    assert answer["removed"] == ["alone"]


def test_all_stacks_removed(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(repository.root / "stacks")
    assert asked(capfd, "--changed-since", "HEAD")["removed"] == ["alone", "reads"]


def test_a_renamed_stack_is_a_new_one_and_a_removed_one(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.git("mv", "stacks/alone.yaml", "stacks/renamed.yaml")
    repository.write({"stacks/renamed.yaml": PLAIN.format(name="renamed")})
    repository.commit()
    answer = asked(capfd, "--changed-since", before)
    assert changed(answer) == {"renamed": ["stacks/renamed.yaml"]}
    assert answer["removed"] == ["alone"]


def test_another_suffix_is_the_same_stack(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.git("mv", "stacks/alone.yaml", "stacks/alone.yml")
    answer = asked(capfd, "--changed-since", "HEAD")
    assert changed(answer) == {"alone": ["stacks/alone.yml"]}
    assert answer["removed"] == []


def test_a_renamed_source_is_gone_for_who_read_it(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.git("mv", "stacks/requirements/more/base.txt", "stacks/base.txt")
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {
        "reads": ["stacks/requirements/more/base.txt"]
    }


def test_only_this_side_of_the_branches_counts(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.git("switch", "--quiet", "--create", "topic")
    repository.commit({"stacks/app/main.py": "print(1)\n"})
    repository.git("switch", "--quiet", "main")
    repository.commit({"stacks/alone.yaml": FILES["stacks/alone.yaml"] + "# main moved on\n"})
    repository.git("switch", "--quiet", "topic")
    assert changed(asked(capfd, "--changed-since", "main")) == {"reads": ["stacks/app/main.py"]}


def test_a_change_that_was_taken_back_is_none(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.commit({"stacks/app/main.py": "print(1)\n"})
    repository.write({"stacks/app/main.py": FILES["stacks/app/main.py"]})
    assert changed(asked(capfd, "--changed-since", before)) == {}


def test_names_keep_their_letters(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    repository.write({"stacks/app/ä b\n.py": "x"})
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {"reads": ["stacks/app/ä b\n.py"]}


def test_what_a_link_leads_to_counts(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    repository.write({"shared/list.txt": "six\n"})
    (repository.root / "stacks/linked.txt").symlink_to("../shared/list.txt")
    spec = PLAIN.format(name="links") + "packages:\n  - {from: linked.txt}\n"
    repository.commit({"stacks/links.yaml": spec})
    repository.write({"shared/list.txt": "idna\n"})
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {"links": ["shared/list.txt"]}


def test_a_submodule_that_moved_concerns_who_reads_it(
    repository: GitRepository, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = GitRepository(tmp_path / "other")
    other.commit({"code.py": "1"})
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(other.root), "stacks/lib"
    )
    spec = PLAIN.format(name="sub") + "files:\n  - {from: lib/code.py, to: /srv/code.py}\n"
    repository.commit({"stacks/sub.yaml": spec})
    repository.write({"stacks/lib/code.py": "2"})
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {"sub": ["stacks/lib"]}
    repository.git("config", "--file", ".gitmodules", "submodule.stacks/lib.ignore", "all")
    repository.git("config", "diff.ignoreSubmodules", "all")
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {"sub": ["stacks/lib"]}
    repository.git("-C", "stacks/lib", "checkout", "--quiet", ".")
    repository.write({"stacks/lib/new.py": "3"})
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {"sub": ["stacks/lib"]}


def test_a_repository_within_that_is_not_committed_concerns_who_reads_it(
    repository: GitRepository, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = PLAIN.format(name="within") + "files:\n  - {from: cloned/app, to: /srv/app}\n"
    repository.commit({"stacks/within.yaml": spec})
    other = GitRepository(repository.root / "stacks/cloned")
    other.write({"app/main.py": "1"})
    assert changed(asked(capfd, "--changed-since", "HEAD")) == {"within": ["stacks/cloned"]}


def test_from_a_subfolder_and_with_odd_settings(
    repository: GitRepository, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("diff.relative", "diff.renames", "diff.noprefix"):
        repository.git("config", key, "true")
    repository.git("config", "diff.external", "false")
    repository.git("mv", "stacks/app/main.py", "stacks/app/other.py")
    monkeypatch.chdir(repository.root / "stacks" / "checks")
    answer = asked(capfd, "--changed-since", "HEAD")
    assert changed(answer) == {"reads": ["stacks/app/main.py", "stacks/app/other.py"]}
    assert answer["stacks"][0]["path"] == "../reads.yaml"


def test_what_lies_outside_cannot_be_compared(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = PLAIN.format(name="outside") + "files:\n  - {from: ../elsewhere, to: /srv}\n"
    repository.commit({"outside.yaml": spec})
    ((reason,),) = changed(asked(capfd, "outside.yaml", "--changed-since", "HEAD")).values()
    assert reason.endswith("../elsewhere (outside the repository)")


def test_an_includes_loop_ends(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    repository.write({"stacks/requirements/more/base.txt": "-r ../more/../app.txt\n"})
    assert set(changed(asked(capfd, "--changed-since", "HEAD"))) == {"reads"}


def test_only_the_stacks_that_are_named(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    repository.write({"stackbuild.toml": ""})
    assert set(changed(asked(capfd, "alone", "--changed-since", "HEAD"))) == {"alone"}


def test_every_broken_spec_is_told(repository: GitRepository, capfd: pytest.CaptureFixture[str]) -> None:
    repository.write({"stacks/alone.yaml": "schema: 2\n", "stacks/third.yaml": "name: [\n"})
    code, said = refused(capfd, "--changed-since", "HEAD")
    assert code == 3
    assert "alone.yaml" in said
    assert "third.yaml" in said


# What cannot be compared -----------------------------------------------------------


@pytest.mark.parametrize("revision", ["no-such", "", "--all", "HEAD^{tree}", "^HEAD", "0" * 40])
def test_an_unknown_revision(
    repository: GitRepository, capfd: pytest.CaptureFixture[str], revision: str
) -> None:
    code, said = refused(capfd, f"--changed-since={revision}")
    assert code == 2
    assert "[unknown-revision]" in said
    if revision.startswith("0"):
        assert "the first push of a branch has nothing before it" in said


@pytest.mark.parametrize("revision", ["gone", "main~1"])
def test_a_shallow_clone(
    repository: GitRepository,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    revision: str,
) -> None:
    repository.commit({"stacks/app/main.py": "print(1)\n"})
    clone = tmp_path / "clone"
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.root}", str(clone))
    monkeypatch.chdir(clone)
    code, said = refused(capfd, "--changed-since", revision)
    assert code == 5
    assert "[shallow-clone]" in said
    assert "fetch-depth: 0" in said
    subprocess.run(["git", "-C", clone, "fetch", "--quiet", "--unshallow"], check=True)
    if revision != "gone":
        assert changed(asked(capfd, "--changed-since", revision)) == {"reads": ["stacks/app/main.py"]}


def test_a_shallow_clone_without_the_merge_base(
    repository: GitRepository,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository.git("branch", "topic")
    repository.commit({"README.md": "1"})
    repository.git("switch", "--quiet", "topic")
    repository.commit({"README.md": "2"})
    clone = tmp_path / "clone"
    repository.git(
        "clone", "--quiet", "--depth", "1", "--no-single-branch", f"file://{repository.root}", str(clone)
    )
    monkeypatch.chdir(clone)
    code, said = refused(capfd, "--changed-since", "origin/main")
    assert code == 5
    assert "[shallow-clone]" in said
    assert "in common" in said


def test_histories_with_nothing_in_common(
    repository: GitRepository, capfd: pytest.CaptureFixture[str]
) -> None:
    repository.git("switch", "--quiet", "--orphan", "other")
    repository.commit({"stacks/alone.yaml": FILES["stacks/alone.yaml"]})
    code, said = refused(capfd, "--changed-since", "main")
    assert code == 2
    assert "[no-common-commit]" in said


def test_no_repository(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks/alone.yaml").write_text(FILES["stacks/alone.yaml"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    code, said = refused(capfd, "--changed-since", "HEAD")
    assert code == 2
    assert "[not-a-repository]" in said
    assert changed(asked(capfd)) == {"alone": []}


def test_no_git(
    repository: GitRepository,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, said = refused(capfd, "--changed-since", "HEAD")
    assert code == 5
    assert "git is not installed" in said


def test_a_checkout_that_git_refuses(
    repository: GitRepository,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\necho \"fatal: detected dubious ownership in repository at '/x'\" >&2\nexit 128\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    code, said = refused(capfd, "--changed-since", "HEAD")
    assert code == 5
    assert "[git-failed]" in said
    assert "safe.directory" in said
