"""The matrix as a child pipeline of GitLab CI ("Dynamic child pipelines")."""

from __future__ import annotations

import io
import re
import shlex
from typing import Any

from ruamel.yaml import YAML

from stackbuild.schedule.model import BuildJob, JobMatrix, JudgeJob, PromoteJob, Runner, StackJobs

# What the parent pipeline sets goes before.
_VARIABLES = {"IMAGES": "$CI_REGISTRY_IMAGE"}
_BEFORE = (
    "python3 -m venv .stackbuild-venv && .stackbuild-venv/bin/pip install --quiet "
    '"${STACKBUILD_PACKAGE:?set the variable STACKBUILD_PACKAGE}"',
    'export PATH="$PWD/.stackbuild-venv/bin:$PATH"',
    'printf %s "$CI_REGISTRY_PASSWORD" | docker login --username "$CI_REGISTRY_USER" --password-stdin "$CI_REGISTRY"',
)
_DIGEST_OF = "import json; print(json.load(open('staged.json'))['digest'])"
_NOT_REVIEWED = "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"


def gitlab_pipeline(matrix: JobMatrix) -> str:
    """The child pipeline as YAML: build on runners without GPU, judge on each kind of GPU, promote.

    Tags are promoted on the default branch only. GitLab fails on a pipeline without a job, so one that says that
    nothing changed is there when there is no other.
    """
    document: dict[str, Any] = {
        "stages": ["build", "judge", "promote"],
        "variables": dict(_VARIABLES),
        "workflow": {"rules": [{"when": "always"}]},
        "default": {"before_script": list(_BEFORE)},
    }
    for stack in matrix.stacks:
        for build in stack.build:
            document[_build_name(stack, build.platform)] = _build(stack, build)
        for judge in stack.judge:
            document[_judge_name(stack, judge)] = _judge(stack, judge)
        if stack.promote is not None:
            document[f"promote {stack.stack}"] = _promote(stack, stack.promote)
    if not matrix.stacks:
        document["nothing changed"] = {
            "stage": "build",
            "before_script": [],
            "script": ["echo 'No stack changed.'"],
        }
    yaml = YAML()
    yaml.width = 4096
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _build(stack: StackJobs, job: BuildJob) -> dict[str, Any]:
    spec = shlex.quote(stack.path)
    return {
        "stage": "build",
        **_tags(job.runner),
        "script": [
            f"stackbuild build {spec} --locked",
            f'stackbuild publish {spec} "$IMAGES/{stack.stack}" --stage --format json --output staged.json',
            f'echo "{_variable(job.platform)}=$(python3 -c "{_DIGEST_OF}")" > staged.env',
        ],
        "artifacts": {"paths": ["staged.json"], "reports": {"dotenv": "staged.env"}, "expire_in": "1 week"},
    }


def _judge(stack: StackJobs, job: JudgeJob) -> dict[str, Any]:
    report = f"--format junit --output {shlex.quote(f'{job.id}.xml')}"
    if stack.external:
        spec = shlex.quote(stack.path)
        script = [
            f"docker pull {shlex.quote(stack.external)}",
            f"stackbuild verify {spec} {report}",
        ]
        needs: list[dict[str, Any]] = []
    else:
        image = f'"$IMAGES/{stack.stack}@${_variable(job.platform)}"'
        script = [f"stackbuild verify {image} --attach {report}"]
        needs = [{"job": _build_name(stack, job.platform), "artifacts": True}]
    return {
        "stage": "judge",
        **_tags(job.runner),
        "needs": needs,
        "script": script,
        "artifacts": {"when": "always", "reports": {"junit": f"{job.id}.xml"}, "expire_in": "1 week"},
    }


def _promote(stack: StackJobs, job: PromoteJob) -> dict[str, Any]:
    repository = f'"$IMAGES/{stack.stack}"'
    images = " ".join(f'"$IMAGES/{stack.stack}@${_variable(build.platform)}"' for build in stack.build)
    needs: list[dict[str, Any]] = [
        {"job": _build_name(stack, build.platform), "artifacts": True} for build in stack.build
    ]
    needs += [{"job": _judge_name(stack, judge)} for judge in stack.judge]
    return {
        "stage": "promote",
        **_tags(job.runner),
        "rules": [{"if": _NOT_REVIEWED}],
        "needs": needs,
        "script": [f"stackbuild publish {images} {repository} --require {job.require}"],
    }


def _tags(runner: Runner) -> dict[str, list[str]]:
    return {"tags": list(runner.labels)} if runner.labels else {}


def _build_name(stack: StackJobs, platform: str) -> str:
    return f"build {stack.stack} {platform}"


def _judge_name(stack: StackJobs, job: JudgeJob) -> str:
    return f"judge {stack.stack} {job.platform} {job.requires}"


def _variable(platform: str) -> str:
    """The dotenv variable that carries a platform's digest from its build to those who need it."""
    return f"DIGEST_{re.sub('[^A-Z0-9]', '_', platform.upper())}"
