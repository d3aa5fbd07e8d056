"""The jobs of stacks, and what the services get of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stackbuild.cli.main import run
from tests.schedule.repository import GPU, PLAIN
from tests.schedule.schemas import violations

FLEET = "target: {{gpus: [H200, A100, H100, '8.9'], driver: '>=580.65'}}\n"
STACKS = {
    "plain": PLAIN,
    "gpu": GPU + FLEET,
    "both": PLAIN + "platforms: [linux/amd64, linux/arm64]\ntarget: {{gpus: [H100]}}\n",
    "theirs": "schema: 1\nname: {name}\nexternal: vllm/vllm-openai:v0.11.0\ntarget: {{gpus: [L40S]}}\n",
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names: str, **more: str) -> None:
    for name, text in {**{name: STACKS[name] for name in names}, **more}.items():
        Path("stacks", f"{name}.yaml").write_text(text.format(name=name))


def answer(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    capfd.readouterr()
    ended = run(["matrix", *arguments])
    out, err = capfd.readouterr()
    assert ended == code, err
    return out if code == 0 else err


def github(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    lines = answer(capfd, *arguments, "--format", "github").splitlines()
    return {name: json.loads(value) for name, _, value in (line.partition("=") for line in lines)}


def gitlab(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    text = answer(capfd, *arguments, "--format", "gitlab")
    document: dict[str, Any] = YAML(typ="safe").load(text)
    assert violations("gitlab-ci", document) == []
    return document


def test_a_gpu_stack_is_judged_once_for_each_compute_capability(capfd: pytest.CaptureFixture[str]) -> None:
    write("gpu")
    (stack,) = json.loads(answer(capfd, "--format", "json"))["stacks"]
    assert [(job["requires"], job["gpus"]) for job in stack["judge"]] == [
        ("sm_80", ["A100"]),
        ("sm_89", ["compute capability 8.9"]),
        ("sm_90", ["H200", "H100"]),
    ]
    assert [job["runner"]["labels"] for job in stack["judge"]] == [
        ["gpu", "sm_80"],
        ["gpu", "sm_89"],
        ["gpu", "sm_90"],
    ]
    assert stack["build"] == [
        {"id": "gpu", "platform": "linux/amd64", "runner": {"kind": "cpu", "labels": [], "mapped": False}}
    ]
    assert stack["promote"]["require"] == "sm_80,sm_89,sm_90"


def test_a_stack_without_gpu_is_judged_on_a_cpu(capfd: pytest.CaptureFixture[str]) -> None:
    write("plain")
    (stack,) = json.loads(answer(capfd, "--format", "json"))["stacks"]
    assert [job["requires"] for job in stack["judge"]] == ["cpu"]
    assert stack["promote"]["require"] == "cpu"


def test_github(capfd: pytest.CaptureFixture[str]) -> None:
    write("plain", "gpu")
    told = github(capfd)
    assert told["any"] is told["any_build"] is told["any_judge"] is told["any_promote"] is True
    assert told["build"] == {
        "include": [
            {
                "id": "gpu",
                "stack": "gpu",
                "spec": "stacks/gpu.yaml",
                "platform": "linux/amd64",
                "runs_on": ["ubuntu-24.04"],
            },
            {
                "id": "plain",
                "stack": "plain",
                "spec": "stacks/plain.yaml",
                "platform": "linux/amd64",
                "runs_on": ["ubuntu-24.04"],
            },
        ]
    }
    judged = told["judge"]["include"]
    assert [(job["id"], job["build"], job["requires"], job["runs_on"]) for job in judged] == [
        ("gpu-sm_80", "gpu", "sm_80", ["self-hosted", "gpu", "sm_80"]),
        ("gpu-sm_89", "gpu", "sm_89", ["self-hosted", "gpu", "sm_89"]),
        ("gpu-sm_90", "gpu", "sm_90", ["self-hosted", "gpu", "sm_90"]),
        ("plain-cpu", "plain", "cpu", ["ubuntu-24.04"]),
    ]
    assert [(job["builds"], job["require"]) for job in told["promote"]["include"]] == [
        ("gpu", "sm_80,sm_89,sm_90"),
        ("plain", "cpu"),
    ]


def test_each_platform_is_built_and_judged_on_its_own_machines(capfd: pytest.CaptureFixture[str]) -> None:
    write("both")
    told = github(capfd)
    assert [(job["id"], job["runs_on"]) for job in told["build"]["include"]] == [
        ("both-linux-amd64", ["ubuntu-24.04"]),
        ("both-linux-arm64", ["ubuntu-24.04-arm"]),
    ]
    assert [(job["build"], job["runs_on"]) for job in told["judge"]["include"]] == [
        ("both-linux-amd64", ["self-hosted", "gpu", "sm_90"]),
        ("both-linux-arm64", ["self-hosted", "gpu", "sm_90", "arm64"]),
    ]
    assert told["promote"]["include"][0]["builds"] == "both-linux-amd64 both-linux-arm64"
    (promote,) = (job for name, job in gitlab(capfd).items() if name.startswith("promote "))
    assert promote["script"] == [
        'stackbuild publish "$IMAGES/both@$DIGEST_LINUX_AMD64" "$IMAGES/both@$DIGEST_LINUX_ARM64" "$IMAGES/both" '
        "--require sm_90"
    ]


def test_an_external_stack_is_only_judged(capfd: pytest.CaptureFixture[str]) -> None:
    write("theirs")
    told = github(capfd)
    assert told["any"] is told["any_judge"] is True
    assert told["any_build"] is told["any_promote"] is False
    assert told["build"] == told["promote"] == {"include": []}
    (judge,) = told["judge"]["include"]
    assert (judge["external"], judge["build"]) == ("vllm/vllm-openai:v0.11.0", "")
    document = gitlab(capfd)
    job = document["judge theirs linux/amd64 sm_89"]
    assert job["needs"] == []
    assert job["script"][0] == "docker pull vllm/vllm-openai:v0.11.0"
    assert "--attach" not in job["script"][1]


def test_the_site_file_names_the_runners(capfd: pytest.CaptureFixture[str]) -> None:
    write("plain", "gpu")
    Path("stackbuild.toml").write_text(
        '[runners]\ncpu = "builders"\nsm_90 = ["self-hosted", "gpu", "h100"]\nsm_90-arm64 = ["gh200"]\n'
    )
    told = github(capfd)
    assert told["build"]["include"][0]["runs_on"] == ["builders"]
    assert [job["runs_on"] for job in told["judge"]["include"]] == [
        ["self-hosted", "gpu", "sm_80"],
        ["self-hosted", "gpu", "sm_89"],
        ["self-hosted", "gpu", "h100"],
        ["builders"],
    ]
    document = gitlab(capfd)
    assert document["build gpu linux/amd64"]["tags"] == ["builders"]
    assert document["judge gpu linux/amd64 sm_80"]["tags"] == ["gpu", "sm_80"]
    assert document["judge gpu linux/amd64 sm_90"]["tags"] == ["self-hosted", "gpu", "h100"]


@pytest.mark.parametrize("table", ['h100 = ["x"]', 'sm_90 = [""]', "sm_90 = [1]", 'cpu = "a\\nb"'])
def test_a_runner_that_cannot_be(capfd: pytest.CaptureFixture[str], table: str) -> None:
    write("plain")
    Path("stackbuild.toml").write_text(f"[runners]\n{table}\n")
    assert "[site-config-invalid]" in answer(capfd, code=2)


def test_gitlab(capfd: pytest.CaptureFixture[str]) -> None:
    write("gpu", "plain")
    document = gitlab(capfd)
    build = document["build gpu linux/amd64"]
    assert "tags" not in build
    assert build["script"][:2] == [
        "stackbuild build stacks/gpu.yaml --locked",
        'stackbuild publish stacks/gpu.yaml "$IMAGES/gpu" --stage --format json --output staged.json',
    ]
    assert build["artifacts"]["reports"] == {"dotenv": "staged.env"}
    judge = document["judge gpu linux/amd64 sm_90"]
    assert judge["needs"] == [{"job": "build gpu linux/amd64", "artifacts": True}]
    assert judge["script"] == [
        'stackbuild verify "$IMAGES/gpu@$DIGEST_LINUX_AMD64" --attach --format junit --output gpu-sm_90.xml'
    ]
    promote = document["promote gpu"]
    assert {need["job"] for need in promote["needs"]} == {
        "build gpu linux/amd64",
        *(f"judge gpu linux/amd64 {kind}" for kind in ("sm_80", "sm_89", "sm_90")),
    }
    assert promote["script"] == [
        'stackbuild publish "$IMAGES/gpu@$DIGEST_LINUX_AMD64" "$IMAGES/gpu" --require sm_80,sm_89,sm_90'
    ]
    assert promote["rules"] == [{"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}]


def test_no_stack_is_a_pipeline_that_runs(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from tests.schedule.repository import GitRepository

    GitRepository(tmp_path).commit()
    assert github(capfd, "--changed-since", "HEAD") == {
        "any": False,
        **{f"any_{name}": False for name in ("build", "judge", "promote")},
        **{name: {"include": []} for name in ("build", "judge", "promote")},
        "removed": [],
    }
    assert gitlab(capfd, "--changed-since", "HEAD")["nothing changed"]["script"] == [
        "echo 'No stack changed.'"
    ]


def test_a_gpu_stack_that_names_no_gpu(capfd: pytest.CaptureFixture[str]) -> None:
    write(gpu=GPU)
    said = answer(capfd, code=3)
    assert "[no-target-gpus]" in said
    assert "gpu.yaml" in said


def test_two_stacks_of_one_name(capfd: pytest.CaptureFixture[str]) -> None:
    write("plain", other=PLAIN.replace("{name}", "plain"))
    said = answer(capfd, code=3)
    assert "[stack-name-twice]" in said
    assert "plain.yaml:2:7: the stack " in said
    assert "other.yaml is called 'plain' as well" in said


def test_a_gpu_that_nobody_knows(capfd: pytest.CaptureFixture[str]) -> None:
    write(gpu=GPU + "target: {{gpus: [H1000]}}\n")
    assert "[unknown-gpu]" in answer(capfd, code=3)


def test_more_jobs_than_github_runs(capfd: pytest.CaptureFixture[str]) -> None:
    write(**{f"stack-{number}": GPU + FLEET for number in range(86)})
    said = answer(capfd, "--format", "github", code=2)
    assert "258 judge jobs are more than the 256" in said
    assert "[matrix-too-large]" in said
    answer(capfd, "--format", "gitlab")


def test_the_table_is_for_people(capfd: pytest.CaptureFixture[str]) -> None:
    write("gpu")
    told = answer(capfd)
    assert "judge    linux/amd64 sm_90 (H200, H100) on gpu, sm_90" in told
    assert "promote  --require sm_80,sm_89,sm_90 on any runner (cpu)" in told


def test_a_file_gets_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write("plain")
    assert answer(capfd, "--format", "gitlab", "--output", "child.yml") == ""
    assert "build plain linux/amd64:" in Path("child.yml").read_text()


def test_the_schemas_refuse_what_the_services_refuse() -> None:
    assert violations("gitlab-ci", {"job": {"script": 3}}) != []
    assert violations("github-workflows", {"on": "push", "jobs": {"one": {"steps": []}}}) != []
