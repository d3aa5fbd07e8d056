"""The schedules in docs/: what can be known of them without the services they are for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.facts.tables import Facts
from stackbuild.schedule.github_outputs import github_outputs
from stackbuild.schedule.gitlab_pipeline import gitlab_pipeline
from stackbuild.schedule.jobs import jobs_of
from stackbuild.schedule.model import JobMatrix
from stackbuild.spec.load import load_specs
from tests.schedule.repository import GPU, PLAIN, GitRepository
from tests.schedule.schemas import violations

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schedules"
# Actions by their name at a full commit, with the release in a comment.
PINNED = re.compile(r"uses: actions/[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")


def tool(name: str) -> str:
    """A development tool, of this Python's environment first."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found is not None, f"{name} is not installed: scripts/setup.sh unit"
    return found


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = YAML(typ="safe").load(FOLDER / name)
    return document


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> JobMatrix:
    """A GPU stack of two platforms, one without GPU, and an external one."""
    folder = tmp_path_factory.mktemp("stacks")
    texts = {
        "gpu": GPU + "platforms: [linux/amd64, linux/arm64]\ntarget: {{gpus: [A100, H100]}}\n",
        "plain": PLAIN,
        "theirs": "schema: 1\nname: {name}\nexternal: vllm/vllm-openai:v0.11.0\ntarget: {{gpus: [L40S]}}\n",
    }
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(text.format(name=name))
    return JobMatrix(
        stacks=tuple(jobs_of(stack, f"stacks/{stack.path.name}", Facts(), {}) for stack in load_specs(paths))
    )


# GitHub -----------------------------------------------------------------------------


def test_the_github_workflow_is_one() -> None:
    assert violations("github-workflows", read("github-actions.yml")) == []


def test_the_linter_of_workflows_has_nothing_to_say(tmp_path: Path) -> None:
    workflow = tmp_path / ".github" / "workflows" / "stacks.yml"
    workflow.parent.mkdir(parents=True)
    text = (FOLDER / "github-actions.yml").read_text(encoding="utf-8")
    workflow.write_text(text)
    asked = [tool("jactionlint"), "--no-color", str(workflow)]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    # It notices what would go wrong at run time.
    workflow.write_text(text.replace("needs.matrix.outputs.judge)", "needs.matrix.outputs.jugde)"))
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    assert done.returncode == 1
    assert "jugde" in done.stdout


def test_every_action_is_pinned_by_commit() -> None:
    lines = [
        line.strip().removeprefix("- ")
        for line in (FOLDER / "github-actions.yml").read_text(encoding="utf-8").splitlines()
        if line.strip().removeprefix("- ").startswith("uses:")
    ]
    assert len(lines) >= 10
    assert [line for line in lines if not PINNED.fullmatch(line)] == []


def test_a_job_may_do_what_it_does_and_no_more() -> None:
    workflow = read("github-actions.yml")
    assert workflow["permissions"] == {}
    allowed = {name: job["permissions"] for name, job in workflow["jobs"].items()}
    assert allowed == {
        "matrix": {"contents": "read"},
        "build": {"contents": "read", "packages": "write"},
        "judge": {"contents": "read", "packages": "write"},
        "promote": {"contents": "read", "packages": "write"},
        "nightly": {"contents": "read", "packages": "read"},
        "page": {"pages": "write", "id-token": "write"},
    }
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_the_workflow_reads_what_the_matrix_writes(matrix: JobMatrix) -> None:
    workflow = read("github-actions.yml")
    outputs = {
        name: json.loads(value)
        for name, _, value in (line.partition("=") for line in github_outputs(matrix).splitlines())
    }
    declared = workflow["jobs"]["matrix"]["outputs"]
    stepped = {name for name, value in declared.items() if "steps.jobs.outputs" in value}
    assert stepped <= set(outputs)
    for name in ("build", "judge", "promote"):
        job = json.dumps(workflow["jobs"][name])
        used = set(re.findall(r"\bmatrix\.(\w+)", job)) - {"outputs"}
        for row in outputs[name]["include"]:
            assert used <= set(row), name


@pytest.mark.parametrize("layout", ["folders", "single"])
def test_promote_names_every_platforms_digest(matrix: JobMatrix, tmp_path: Path, layout: str) -> None:
    (script,) = (
        step["run"]
        for step in read("github-actions.yml")["jobs"]["promote"]["steps"]
        if step.get("name") == "Promote"
    )
    builds = ["gpu-linux-amd64", "gpu-linux-arm64"] if layout == "folders" else ["plain"]
    for number, build in enumerate(builds):
        folder = tmp_path / "staged" / f"staged-{build}" if layout == "folders" else tmp_path / "staged"
        folder.mkdir(parents=True)
        (folder / "digest").write_text(f"sha256:{number}\n")
    fake = tmp_path / "bin" / "stackbuild"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    environment = {
        "PATH": f"{fake.parent}:/usr/bin:/bin",
        "IMAGES": "r.example/team",
        "STACK": "s",
        "BUILDS": " ".join(builds),
        "REQUIRE": "sm_80,sm_90",
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    images = [f"r.example/team/s@sha256:{number}" for number in range(len(builds))]
    assert done.stdout.split() == ["publish", *images, "r.example/team/s", "--require", "sm_80,sm_90"]


# GitLab -----------------------------------------------------------------------------


def test_the_gitlab_pipeline_is_one() -> None:
    assert violations("gitlab-ci", read("gitlab-ci.yml")) == []


def test_the_child_pipeline_is_one_and_needs_what_there_is(matrix: JobMatrix) -> None:
    document = YAML(typ="safe").load(gitlab_pipeline(matrix))
    assert violations("gitlab-ci", document) == []
    for job in document.values():
        for need in job.get("needs", ()) if isinstance(job, dict) else ():
            assert need["job"] in document


def test_parent_and_child_set_up_alike(matrix: JobMatrix) -> None:
    parent = read("gitlab-ci.yml")
    child = YAML(typ="safe").load(gitlab_pipeline(matrix))
    assert child["default"]["before_script"][:2] == parent[".stackbuild"]["before_script"]
    assert set(child["variables"]) <= set(parent["variables"])  # which go along to the child


# What changed -----------------------------------------------------------------------


def _matrix_script(service: str) -> str:
    if service == "gitlab":
        return "\n".join(read("gitlab-ci.yml")["matrix"]["script"])
    steps = read("github-actions.yml")["jobs"]["matrix"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("id") == "jobs")
    return str(script)


@pytest.mark.parametrize("service", ["github", "gitlab"])
@pytest.mark.parametrize(
    ("before", "asked"),
    [
        ("there", "--changed-since"),
        ("", "--all"),
        ("0" * 40, "--all"),  # a branch's first push
        ("a1" * 20, "--all"),  # after a forced push
        ("unrelated", "--all"),
    ],
)
def test_a_push_without_a_known_commit_before_it_lists_every_stack(
    tmp_path: Path, service: str, before: str, asked: str
) -> None:
    repository = GitRepository(tmp_path / "repository")
    commits = {"there": repository.commit({"a": "1"})}
    repository.commit({"a": "2"})
    commits["unrelated"] = repository.git("commit-tree", "HEAD^{tree}", "-m", "another history")
    before = commits.get(before, before)
    fake = tmp_path / "bin" / "stackbuild"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    fake.chmod(0o755)
    environment = {
        "PATH": f"{fake.parent}:/usr/bin:/bin",
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "BASE": before,
        "CI_PIPELINE_SOURCE": "push",
        "CI_COMMIT_BEFORE_SHA": before,
    }
    asking = ["bash", "-eo", "pipefail", "-c", _matrix_script(service)]
    subprocess.run(asking, env=environment, cwd=repository.root, check=True, capture_output=True, timeout=600)
    called = (tmp_path / "calls").read_text().splitlines()[-1].split()
    assert called[:2] == ["matrix", asked]
    assert (before in called) is (asked == "--changed-since")


def test_the_page_is_handed_over_only_when_there_is_one() -> None:
    jobs = read("github-actions.yml")["jobs"]
    (hand,) = (step for step in jobs["nightly"]["steps"] if "upload-pages-artifact" in step.get("uses", ""))
    assert hand["if"] == "always() && hashFiles('page/index.html') != ''"
    assert jobs["nightly"]["outputs"]["page"] == f"${{{{ steps.{hand['id']}.outputs.artifact_id }}}}"
    assert "needs.nightly.outputs.page != ''" in jobs["page"]["if"]


# Shell ------------------------------------------------------------------------------


def scripts(matrix: JobMatrix) -> Iterator[tuple[str, str]]:
    for name, job in read("github-actions.yml")["jobs"].items():
        for step in job["steps"]:
            if "run" in step:
                yield f"github {name}: {step['name']}", step["run"]
    documents = {"gitlab": read("gitlab-ci.yml"), "child": YAML(typ="safe").load(gitlab_pipeline(matrix))}
    for kind, document in documents.items():
        for name, job in document.items():
            for key in ("before_script", "script"):
                if isinstance(job, dict) and job.get(key):
                    yield f"{kind} {name}", "\n".join(job[key])


def test_shellcheck_has_nothing_to_say(matrix: JobMatrix, tmp_path: Path) -> None:
    files = []
    for number, (name, script) in enumerate(scripts(matrix)):
        files.append(tmp_path / f"{number}.sh")
        # A service sets the variables in capitals.
        files[-1].write_text(f"#!/bin/bash\n# {name}\n{script}\n")
    assert len(files) > 20
    done = subprocess.run(
        [tool("shellcheck"), *files], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


# systemd ----------------------------------------------------------------------------


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with a program that is there, and a docker.service where the machine has none."""
    for unit in FOLDER.glob("stackbuild-*"):
        text = unit.read_text(encoding="utf-8").replace(
            "/opt/stackbuild/bin/stackbuild", shutil.which("true") or ""
        )
        (tmp_path / unit.name).write_text(text)
    (tmp_path / "docker.service").write_text(f"[Service]\nExecStart={shutil.which('true')}\n")
    return tmp_path


def verified(units: Path) -> tuple[int, str]:
    paths = sorted(path for path in units.glob("stackbuild-*") if path.is_file())
    done = subprocess.run(
        [tool("systemd-analyze"), "verify", "--man=no", *paths],
        capture_output=True,
        text=True,
        env={"SYSTEMD_UNIT_PATH": f"{units}:", "PATH": "/usr/bin:/bin"},
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_systemd_takes_the_units(units: Path) -> None:
    assert verified(units) == (0, "")
    service = units / "stackbuild-nightly.service"
    service.write_text(service.read_text().replace("ProtectHome=yes", "ProtectHom=yes"))
    code, said = verified(units)
    assert "Unknown key" in said, code


def test_systemd_takes_the_drop_ins_of_the_document(units: Path) -> None:
    text = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
    drop_ins = re.findall(r"^    (\[(?:Service|Unit)\]\n(?:    .+\n)+)", text, re.M)
    assert len(drop_ins) == 5
    named = set(re.findall(r"^    (?:OnFailure|Wants)=(.+)$", text, re.M))
    assert named == {path.name for path in FOLDER.glob("stackbuild-*.service")} - {
        "stackbuild-nightly.service"
    }
    folder = units / "stackbuild-nightly.service.d"
    folder.mkdir()
    for number, drop_in in enumerate(drop_ins):
        (folder / f"{number}.conf").write_text(drop_in.replace("    ", ""))
    assert verified(units) == (0, "")


def test_the_mail_of_a_failed_night_is_one(tmp_path: Path) -> None:
    unit = (FOLDER / "stackbuild-nightly-failed.service").read_text(encoding="utf-8")
    (script,) = re.findall(r"^ExecStart=/bin/sh -c '(.+)'$", unit, re.M)
    # systemd's own escapes: a doubled per cent sign, a doubled backslash, %H.
    script = script.replace("%%", "%").replace("\\\\", "\\").replace("%H", "machine")
    for name, text in (("journalctl", "printf 'the night\\n'"), ("sendmail", f"cat > {tmp_path}/mail")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = script.replace("/usr/sbin/sendmail", "sendmail")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TO": "a@example.org"}
    subprocess.run(["/bin/sh", "-c", script], env=environment, check=True, timeout=600)
    assert (tmp_path / "mail").read_text() == (
        "To: a@example.org\nSubject: stackbuild on machine: the night needs a look\n\nthe night\n"
    )


def test_the_timer_starts_the_service_and_makes_up_for_a_night() -> None:
    timer = (FOLDER / "stackbuild-nightly.timer").read_text(encoding="utf-8")
    assert "Persistent=yes" in timer
    (when,) = re.findall(r"^OnCalendar=(.+)$", timer, re.M)
    done = subprocess.run(
        [tool("systemd-analyze"), "calendar", when], capture_output=True, text=True, timeout=600, check=True
    )
    assert f"Normalized form: {when}" in done.stdout
